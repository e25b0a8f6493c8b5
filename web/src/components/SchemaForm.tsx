// SchemaForm.tsx - a form from a JSON Schema: react-jsonschema-form with a validator that interprets, because others
// compile with eval, which the policy forbids. Errors stand beside their fields; what was typed stays.
import {Validator} from '@cfworker/json-schema';
import Form from '@rjsf/core/lib/components/Form.js';
import {toErrorSchema, type RJSFSchema, type RJSFValidationError, type UiSchema, type ValidatorType} from '@rjsf/utils';
import {type ReactNode, useEffect, useRef, useState} from 'react';
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

/** Secrets are dots; long texts have room. */
function looks(schema: any, name = ''): UiSchema {
	const ui: UiSchema = {};
	if (!schema || typeof schema !== 'object')
		return ui;
	if (schema.type === 'string' && !schema.enum && (schema.writeOnly === true || schema['x-sensitive'] === true || schema.format === 'password' || SECRET.test(name)))
		ui['ui:widget'] = 'password';
	else if (schema.type === 'string' && !schema.enum && !schema.format && (schema.maxLength ?? 0) > 400)
		ui['ui:widget'] = 'textarea';
	for (const [key, part] of Object.entries(schema.properties ?? {}))
		ui[key] = looks(part, key);
	if (schema.items && !Array.isArray(schema.items))
		ui.items = looks(schema.items, name);
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

export default function SchemaForm({id, schema, submit, busy, wrong, more, verb = 'Submit'}: {id: string; schema: object; submit: (values: unknown) => void; busy: boolean; wrong: Problem | null; more?: ReactNode; verb?: string}) {
	const [data, setData] = useState<any>(undefined);
	const [raw, setRaw] = useState<string | null>(null);
	const [bad, setBad] = useState('');
	const ref = useRef<any>(null);
	const ui = useRef(looks(schema)).current;
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
	return <Form ref={ref} className="schema-form" idPrefix={`f${id.replace(/\W/g, '')}`} schema={schema as RJSFSchema} uiSchema={{...ui, 'ui:submitButtonOptions': {norender: true}}} validator={validator} templates={TEMPLATES} formData={data} disabled={busy}
		noHtml5Validate showErrorList={false} focusOnFirstError extraErrors={fromServer(wrong)}
		onChange={(e) => setData(e.formData)} onSubmit={(e) => submit(e.formData ?? {})} onError={(all) => say(`${all.length === 1 ? 'One field needs' : `${all.length} fields need`} a look: ${all[0]?.message ?? ''}`)}>
		{note}{acts}
	</Form>;
}
