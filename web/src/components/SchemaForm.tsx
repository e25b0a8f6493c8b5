// SchemaForm.tsx - a form from a JSON Schema: react-jsonschema-form with a validator that interprets, because others
// compile with eval, which the policy forbids. Errors stand beside their fields; what was typed stays.
import {Validator} from '@cfworker/json-schema';
import Form from '@rjsf/core/lib/components/Form.js';
import {toErrorSchema, type RJSFSchema, type RJSFValidationError, type UiSchema, type ValidatorType} from '@rjsf/utils';
import {type ReactNode, useEffect, useMemo, useRef, useState} from 'react';
import type {Problem} from '../lib/api';
import {say} from '../lib/say';
import {Segment} from './ui';

const SECRET = /passw|passphrase|secret|api.?key|access.?key|private.?key|credential|(^|[^a-z])(token|pin|pwd|otp|cvv)($|[^a-z])/i;

const WORDS: Record<string, (limit: any) => string> = {
	required: () => 'This is needed.', pattern: (p) => `It must look like ${p}.`, minimum: (n) => `At least ${n}.`, maximum: (n) => `At most ${n}.`,
	exclusiveMinimum: (n) => `More than ${n}.`, exclusiveMaximum: (n) => `Less than ${n}.`, minLength: (n) => `At least ${n} characters.`, maxLength: (n) => `At most ${n} characters.`,
	enum: () => 'Choose one of the values.', type: (t) => `It must be of the type ${t}.`, minItems: (n) => `At least ${n}.`, maxItems: (n) => `At most ${n}.`, format: (f) => `It must be a ${f}.`,
	uniqueItems: () => 'Each only once.', multipleOf: (n) => `A multiple of ${n}.`, const: (c) => `It must be ${JSON.stringify(c)}.`,
};

function pointer(location: string): string[] {
	return location.replace(/^#\/?/, '').split('/').filter(Boolean).map((p) => decodeURIComponent(p).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function at(schema: any, location: string): any {
	return pointer(location).reduce((s, key) => s?.[key], schema);
}

const AROUND = new Set(['properties', 'items', 'prefixItems', 'additionalProperties', 'allOf', 'if', 'then', 'else', '$ref', 'dependentSchemas']);

function errorsOf(schema: RJSFSchema, data: unknown): RJSFValidationError[] {
	const found = new Validator(schema as any, '2020-12', false).validate(data ?? {});
	return found.errors.filter((e) => !AROUND.has(e.keyword)).map((e) => {
		const missing = e.keyword === 'required' ? /"([^"]*)"/.exec(e.error)?.[1] : undefined;
		const path = [...pointer(e.instanceLocation), ...(missing === undefined ? [] : [missing])];
		const message = WORDS[e.keyword]?.(at(schema, e.keywordLocation)) ?? e.error;
		return {name: e.keyword, property: `.${path.join('.')}`, message, stack: message, params: {}};
	});
}

const validator: ValidatorType = {
	validateFormData(data, schema) {
		const errors = errorsOf(schema, data);
		return {errors, errorSchema: toErrorSchema(errors)};
	},
	isValid(schema, data, root) {
		try {
			return new Validator({...schema, $defs: {...(root as any)?.$defs, ...(schema as any).$defs}, definitions: {...(root as any)?.definitions}} as any, '2020-12').validate(data).valid;
		} catch {
			return false;
		}
	},
	rawValidation: <Result,>(schema: any, data: any) => ({errors: errorsOf(schema, data) as unknown as Result[]}),
};

/** Any value, as JSON: for what a schema says too little about. */
function JsonField({fieldPathId, idSchema, formData, onChange, schema, name, required, disabled}: any) {
	const id = fieldPathId?.$id ?? idSchema?.$id ?? name;
	const [text, type] = useState(() => formData === undefined ? '' : JSON.stringify(formData, null, 2));
	const [bad, setBad] = useState('');
	const own = useRef(formData);
	useEffect(() => {
		if (JSON.stringify(own.current) !== JSON.stringify(formData)) { // changed elsewhere, such as by undo
			own.current = formData;
			type(formData === undefined ? '' : JSON.stringify(formData, null, 2));
			setBad('');
		}
	}, [formData]);
	return <div className="rjsf-field"><label className="control-label" htmlFor={id}>{schema.title ?? name}{required ? '*' : ''} <span className="t3 f11 mono">JSON</span></label>
		{schema.description && <p className="field-description">{schema.description}</p>}
		<textarea id={id} className="mono" rows={Math.min(12, text.split('\n').length + 1)} spellCheck={false} disabled={disabled} value={text} onChange={(e) => {
			type(e.target.value);
			try {
				own.current = e.target.value.trim() ? JSON.parse(e.target.value) : undefined;
				setBad('');
				onChange(own.current, fieldPathId?.path);
			} catch (x) {
				setBad(`This is not JSON yet: ${(x as Error).message}`);
			}
		}} />{bad && <p className="wrong" role="alert">{bad}</p>}</div>;
}
const FIELDS: any = {JsonField};

/** Nothing is said of what is inside. */
function loose(schema: any): boolean {
	return !schema.enum && schema.const === undefined && !schema.$ref && !schema.oneOf && !schema.anyOf && !schema.allOf
		&& (schema.type === undefined || Array.isArray(schema.type) || (schema.type === 'object' && !Object.keys(schema.properties ?? {}).length) || (schema.type === 'array' && !schema.items));
}

const DEEP = 12; // schemas within schemas that are looked into

/** As it is drawn: references are replaced, a value that is left out is said instead of filled in, and a member of
 * which nothing at all is said has its name, without which it would not be drawn. */
function drawn(schema: any, root = schema, depth = 0): any {
	if (!schema || typeof schema !== 'object' || depth > DEEP)
		return schema;
	const {$ref, ...beside} = schema, {$defs: _, default: left, ...own} = $ref?.startsWith('#/') ? {...at(root, $ref), ...beside} : schema;
	const about = left === undefined ? own.description : `${own.description ?? ''} Left out: ${typeof left === 'string' ? left : JSON.stringify(left)}.`.trim();
	return {...own, ...(about ? {description: about} : {}), ...(own.properties ? {properties: Object.fromEntries(Object.entries(own.properties).map(([name, s]) => [name, s === true || !Object.keys(s as object).length ? {title: name} : drawn(s, root, depth + 1)]))} : {}),
		...(own.items && !Array.isArray(own.items) ? {items: drawn(own.items, root, depth + 1)} : {})};
}

/** Secrets are dots; long texts have room; `open`: anything may be written as JSON. */
function looks(schema: any, name = '', open = false): UiSchema {
	const ui: UiSchema = {};
	if (!schema || typeof schema !== 'object')
		return ui;
	if (open && name && loose(schema))
		return {'ui:field': 'JsonField'};
	if (schema.type === 'string' && !schema.enum && (schema.writeOnly === true || schema['x-sensitive'] === true || schema.format === 'password' || SECRET.test(name)))
		ui['ui:widget'] = 'password';
	else if (schema.type === 'string' && !schema.enum && (!schema.format || (open && schema.format === 'template')) && ((schema.maxLength ?? 0) > 400 || (open && /^(prompt|message|text)$/.test(name))))
		ui['ui:widget'] = 'textarea';
	for (const [key, part] of Object.entries(schema.properties ?? {}))
		ui[key] = looks(part, key, open);
	if (schema.items && !Array.isArray(schema.items))
		ui.items = looks(schema.items, name, open);
	return ui;
}

const button = (words: string) => function FormButton({onClick, disabled, id}: {onClick?: any; disabled?: boolean; id?: string}) {
	return <button type="button" id={id} className="btn small" disabled={disabled} onClick={onClick}>{words}</button>;
};
const TEMPLATES: any = {ButtonTemplates: {AddButton: button('Add'), RemoveButton: button('Remove'), MoveUpButton: button('Up'), MoveDownButton: button('Down'), CopyButton: button('Copy'), ClearButton: button('Clear')}};

/** From the server's own words: where it points, the error stands. */
function fromServer(wrong: Problem | null): any {
	if (!wrong)
		return undefined;
	const path = wrong.where.replace(/^\/?payload/, '').split('/').filter(Boolean);
	const root: any = {};
	let here = root;
	for (const key of path)
		here = here[key] = {};
	here.__errors = [wrong.message];
	return root;
}

/** A form without a button: what is typed is said at once, what is wrong stands beside it. */
export function LiveForm({id, schema, values, change}: {id: string; schema: object; values: unknown; change: (values: any) => void}) {
	const [whole, ui] = useMemo(() => { const all = drawn(schema); return [all, looks(all, '', true)]; }, [schema]);
	return <Form className="schema-form" idPrefix={`f${id.replace(/\W/g, '')}`} schema={whole as RJSFSchema} uiSchema={{...ui, 'ui:submitButtonOptions': {norender: true}}} validator={validator} templates={TEMPLATES} fields={FIELDS} formData={values}
		liveValidate="onChange" noHtml5Validate showErrorList={false} experimental_defaultFormStateBehavior={{emptyObjectFields: 'skipDefaults', arrayMinItems: {populate: 'never'}}}
		onChange={(e) => { if (JSON.stringify(e.formData) !== JSON.stringify(values)) change(e.formData); }}><></></Form>;
}

export default function SchemaForm({id, schema, submit, busy, wrong, more, verb = 'Submit', first, open}: {id: string; schema: object; first?: unknown; open?: boolean; submit: (values: unknown) => void; busy: boolean; wrong: Problem | null; more?: ReactNode; verb?: string}) {
	const [data, setData] = useState<any>(first);
	const [raw, setRaw] = useState<string | null>(null);
	const [bad, setBad] = useState('');
	const ref = useRef<any>(null);
	const ui = useRef(looks(schema, '', open)).current;
	useEffect(() => {
		if (wrong)
			say(`Not taken: ${wrong.where} ${wrong.message}`);
	}, [wrong]);
	const sendRaw = () => {
		try {
			submit(JSON.parse(raw ?? ''));
		} catch (e) {
			setBad(`This is not JSON: ${(e as Error).message}`);
		}
	};
	const acts = <div className="ask-acts">
		<button type={raw === null ? 'submit' : 'button'} className="btn main-act" disabled={busy} onClick={raw === null ? undefined : sendRaw}>{verb}</button>{more}
		<span className="grow" /><Segment label="How to fill it in" value={raw === null ? 'form' : 'json'} options={[['form', 'Form'], ['json', 'JSON']]} set={(v) => {
			setBad('');
			if (v === 'json')
				setRaw(JSON.stringify(data ?? {}, null, 2));
			else if (raw !== null) {
				try {
					setData(JSON.parse(raw));
					setRaw(null);
				} catch (e) {
					setBad(`This is not JSON: ${(e as Error).message}`);
				}
			}
		}} /></div>;
	const note = wrong && <p className="wrong" role="alert">{`${wrong.where.replace(/^\/?payload/, '')} ${wrong.message}`.trim()}</p>;
	if (raw !== null)
		return <div className="schema-form"><textarea className="area mono" aria-label="Values as JSON" rows={8} spellCheck={false} value={raw} onChange={(e) => setRaw(e.target.value)} />
			{bad && <p className="wrong" role="alert">{bad}</p>}{note}{acts}</div>;
	return <Form ref={ref} className="schema-form" idPrefix={`f${id.replace(/\W/g, '')}`} schema={schema as RJSFSchema} uiSchema={{...ui, 'ui:submitButtonOptions': {norender: true}}} validator={validator} templates={TEMPLATES} fields={FIELDS} formData={data} disabled={busy}
		noHtml5Validate showErrorList={false} focusOnFirstError extraErrors={fromServer(wrong)}
		onChange={(e) => setData(e.formData)} onSubmit={(e) => submit(e.formData ?? {})} onError={(all) => say(`${all.length === 1 ? 'One field needs' : `${all.length} fields need`} a look: ${all[0]?.message ?? ''}`)}>
		{note}{acts}
	</Form>;
}
