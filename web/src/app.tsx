// app.tsx - the frame around every screen.
import {QueryClientProvider} from '@tanstack/react-query';
import {Component, type ReactNode, Suspense, useEffect, useState, useSyncExternalStore} from 'react';
import {BottomBar, Rail} from './components/Rail';
import {Banner, Palette, ShortcutSheet, Toasts} from './components/Overlays';
import {SignIn} from './components/SignIn';
import {Bones, Empty, ProblemNote, Top, A} from './components/ui';
import {onToken, signedIn} from './lib/api';
import {useKept} from './lib/hooks';
import {useShortcuts} from './lib/keys';
import {go, useView} from './lib/nav';
import {client, watchRuns} from './lib/query';
import {useNav} from './lib/sections';
import {exists, match, screenOf} from './routes';

/** A fault of one screen leaves the others usable. */
class Guard extends Component<{children: ReactNode; name: string}, {error: unknown}> {
	state = {error: null as unknown};
	static getDerivedStateFromError(error: unknown) { return {error}; }
	componentDidUpdate(before: {name: string}) {
		if (before.name !== this.props.name && this.state.error)
			this.setState({error: null});
	}
	render() {
		return this.state.error ? <div className="page"><ProblemNote what="This screen failed" error={this.state.error} retry={() => location.reload()} /></div> : this.props.children;
	}
}

function Screen() {
	const path = useView();
	const found = match(path);
	if (!found)
		return <><Top title="Not here" /><Empty title="There is no such view"><p>The address may be of another version.</p><A className="btn" to="">Home</A></Empty></>;
	const It = screenOf(found.route.screen);
	return <Guard name={path}><Suspense fallback={<div className="page"><Bones /></div>}><It params={found.params} /></Suspense></Guard>;
}

function Signed() {
	const [palette, setPalette] = useState(false);
	const [sheet, setSheet] = useState(false);
	const [more, setMore] = useState(false);
	const [rail, setRail] = useKept('rail', 'auto');
	const view = useView();
	const nav = useNav();
	useEffect(() => setMore(false), [view]);
	useEffect(() => {
		let over = new AbortController();
		let hidden = 0;
		void watchRuns(over.signal);
		const seen = () => {
			clearTimeout(hidden);
			if (document.visibilityState === 'hidden') {
				hidden = window.setTimeout(() => over.abort(), 30000);
			} else if (over.signal.aborted) {
				over = new AbortController();
				void watchRuns(over.signal);
			}
		};
		document.addEventListener('visibilitychange', seen);
		return () => { document.removeEventListener('visibilitychange', seen); over.abort(); };
	}, []);
	useShortcuts([
		{keys: 'Ctrl K', does: 'Search or jump to', run: () => setPalette(true)},
		{keys: '?', does: 'This list', run: () => setSheet(true)},
		...(exists('chat') ? [{keys: 'C', does: 'New chat', run: () => go('c')}] : []),
		...nav.map((r) => ({keys: `G then ${r.nav!.key}`, does: r.title, run: () => go(r.path)})),
		{keys: '[', does: 'Fold the rail', run: () => setRail(innerWidth <= 1100 ? (rail === 'open' ? 'auto' : 'open') : (rail === 'folded' ? 'auto' : 'folded'))},
	], true);
	return <div className="app" data-rail={rail === 'auto' ? undefined : rail} data-sheet={more ? '' : undefined}>
		<Banner />
		<Rail palette={() => setPalette(true)} sheet={() => setSheet(true)} onNavigate={() => setMore(false)} />
		<main className="main"><Screen /></main>
		<BottomBar more={more} toggle={() => setMore(!more)} />
		<Toasts />
		{palette && <Palette close={() => setPalette(false)} sheet={() => setSheet(true)} />}
		{sheet && <ShortcutSheet close={() => setSheet(false)} />}
	</div>;
}

export function App({why}: {why?: string}) {
	const signed = useSyncExternalStore(onToken, signedIn);
	useEffect(() => {
		if (!signed)
			client.clear();
	}, [signed]);
	return <QueryClientProvider client={client}>{signed ? <Signed /> : <SignIn why={why} />}</QueryClientProvider>;
}
