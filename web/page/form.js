// form.js - a form from a JSON Schema: fields of the basic types, and what they hold as values.
import {make} from './screen.js';

/** @typedef {{name: string, schema: any, required: boolean, input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement}} Field */

const SECRET = /passw|passphrase|secret|api.?key|access.?key|private.?key|credential|(^|[^a-z])(token|pin|pwd|otp|cvv)($|[^a-z])/i;
const TYPES = new Map([['email', 'email'], ['date', 'date'], ['uri', 'url'], ['password', 'password']]);

/** @param {string} name @param {any} schema */
function isSecret(name, schema) {
	return schema.writeOnly === true || schema['x-sensitive'] === true || schema.format === 'password' || SECRET.test(name);
}

/** @param {any[]} choices @param {boolean} required */
function selectOf(choices, required) {
	const select = /** @type {HTMLSelectElement} */ (make('select'));
	if (!required)
		select.append(new Option('', ''));
	choices.forEach((choice, i) => select.append(new Option(String(choice), String(i))));
	return select;
}

/** @param {string} name @param {any} schema @param {boolean} required */
function inputOf(name, schema, required) {
	if (Array.isArray(schema.enum))
		return selectOf(schema.enum, required);
	if (schema.type === 'object')
		return /** @type {HTMLTextAreaElement} */ (make('textarea'));
	const input = /** @type {HTMLInputElement} */ (make('input'));
	if (schema.type === 'boolean')
		input.type = 'checkbox';
	else if (schema.type === 'integer' || schema.type === 'number')
		input.type = 'number';
	else
		input.type = isSecret(name, schema) ? 'password' : TYPES.get(schema.format) ?? 'text';
	if (input.type === 'number') {
		input.step = schema.type === 'integer' ? '1' : 'any';
		input.min = schema.minimum ?? '';
		input.max = schema.maximum ?? '';
	}
	input.autocomplete = 'off';
	return input;
}

/** @param {Field} field */
function preset(field) {
	const value = field.schema.default;
	if (value === undefined)
		return;
	if (field.input instanceof HTMLInputElement && field.input.type === 'checkbox')
		field.input.checked = value === true;
	else if (Array.isArray(field.schema.enum))
		field.input.value = String(field.schema.enum.indexOf(value));
	else
		field.input.value = typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
}

/** One item of a list, as its schema wants it. @param {string} text @param {any} schema */
function itemOf(text, schema) {
	return schema?.type === 'integer' || schema?.type === 'number' ? Number(text) : text;
}

/** undefined: nothing was filled in. @param {Field} field */
function valueOf(field) {
	const {schema, input} = field;
	if (input instanceof HTMLInputElement && input.type === 'checkbox')
		return input.checked;
	if (input.value === '' || input.value === undefined)
		return undefined;
	if (Array.isArray(schema.enum))
		return schema.enum[Number(input.value)];
	if (schema.type === 'integer' || schema.type === 'number')
		return Number(input.value);
	if (schema.type === 'array')
		return input.value.split(',').map((t) => t.trim()).filter(Boolean).map((t) => itemOf(t, schema.items));
	if (schema.type === 'object')
		return JSON.parse(input.value);
	return input.value;
}

/** @param {any} schema @returns {{element: HTMLFormElement, values: () => Record<string, any>}} */
export function makeForm(schema) {
	const element = /** @type {HTMLFormElement} */ (make('form', 'fields'));
	/** @type {Field[]} */
	const fields = [];
	for (const [name, own] of Object.entries(schema?.properties ?? {})) {
		const s = own && typeof own === 'object' ? /** @type {any} */ (own) : {};
		const required = Array.isArray(schema.required) && schema.required.includes(name);
		const field = {name, schema: s, required, input: inputOf(name, s, required)};
		const label = make('label'), text = make('span', '', String(s.title ?? name) + (required ? ' *' : ''));
		field.input.name = name;
		field.input.required = required && s.type !== 'boolean';
		preset(field);
		label.append(text, field.input);
		if (s.description)
			label.append(make('small', '', String(s.description)));
		element.append(label);
		fields.push(field);
	}
	return {element, values: () => Object.fromEntries(fields.map((f) => [f.name, valueOf(f)]).filter(([, v]) => v !== undefined))};
}
