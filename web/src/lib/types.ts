// types.ts - the records that screens read. A member that is missing is unknown, which the page says.
export interface Model {provider: string; model: string}

export interface Agent {
	agent_id: string;
	title: string;
	description: string;
	entry: string;
	takes_working_dir?: boolean;
	model?: string;
	runnable?: boolean;
	reason?: string;
	next_step?: string;
	/** Which models a caller may choose; `open`: any other, too. Of one agent, not of the list. */
	models?: {default: Model; choices: Model[]; open: boolean};
	[more: string]: unknown;
}

export interface Session {
	session_id: string;
	title: string | null;
	agent_id: string;
	status: string;
	runs: number;
	live_runs: number;
	waiting_runs: number;
	created_at: string;
	updated_at: string;
	[more: string]: unknown;
}

export interface RunRecord {
	run_id: string;
	agent_id: string;
	status: string;
	engine_status: string;
	session_id: string;
	conversation_id: string;
	turn_id: string;
	root_run_id: string;
	parent_run_id: string | null;
	attempt: number;
	created_at: number;
	updated_at: number;
	started_at: number | null;
	finished_at: number | null;
	title?: string | null;
	duration?: number | null;
	cost?: number | null;
	tokens?: number | null;
	cancel_requested?: boolean;
	error: {code: string; message: string; details?: {retriable?: boolean}} | null;
	usage?: {input_tokens: number; output_tokens: number; estimated?: boolean} | null;
	finish_reason?: string | null;
	[more: string]: unknown;
}

/** A thread of a session, as its snapshot lists it. */
export interface Thread {
	thread_id: string;
	title: string | null;
	status: string;
	origin: string;
	archived?: boolean;
	parent_thread_id: string | null;
	forked_turn_id?: string | null;
	created_at: string;
	[more: string]: unknown;
}

export interface Action {
	action_id: string;
	run_id: string;
	agent_id: string;
	session_id: string;
	conversation_id: string;
	action_type: string;
	kind?: string;
	tool_name?: string;
	tool_call_id?: string;
	prompt: string;
	status: string;
	decisions?: string[];
	scope?: Record<string, any>;
	schema?: Record<string, any>;
	requested_at: number;
	expires_at?: number | null;
	resolved_at?: number | null;
	decision?: string | null;
	result?: string | null;
	source?: string | null;
	reason?: string | null;
	payload?: unknown;
	resolved_by?: {type: string; id: string} | null;
	[more: string]: unknown;
}
