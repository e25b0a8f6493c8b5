// Rows.tsx - a long list of rows of one height; only those that are seen are drawn.
import {useVirtualizer} from '@tanstack/react-virtual';
import {type ReactNode, useRef} from 'react';
import {Empty} from '../../components/ui';

export function Rows({label, count, size, row, none}: {label: string; count: number; size: number; row: (i: number) => ReactNode; none: string}) {
	const box = useRef<HTMLDivElement>(null);
	const virtual = useVirtualizer({count, getScrollElement: () => box.current, estimateSize: () => size, overscan: 12});
	if (!count)
		return <div className="card"><Empty title={none} /></div>;
	return <div className="card admin-rows" ref={box} tabIndex={0} role="list" aria-label={label}><div style={{height: virtual.getTotalSize(), position: 'relative'}} role="presentation">{virtual.getVirtualItems().map((item) =>
		<div key={item.key} data-index={item.index} ref={virtual.measureElement} role="listitem" aria-posinset={item.index + 1} aria-setsize={count} className="admin-at" style={{transform: `translateY(${item.start}px)`}}>{row(item.index)}</div>)}</div></div>;
}
