/* message.h - one JSON-RPC 2.0 message of the Model Context Protocol, read and written.
 *
 * Pure. The id of a request is kept as JSON text ("7", "\"a\""), so that an answer has
 * the very same one. Batches are refused: no revision since 2025-06-18 has them. */
#ifndef UAR_MCP_MESSAGE_H
#define UAR_MCP_MESSAGE_H

#include "json/jw.h"
#include "mcp/limits.h"

enum uar_mcp_kind { UAR_MCP_REQUEST, UAR_MCP_NOTIFICATION, UAR_MCP_RESULT, UAR_MCP_ERROR };

/* Codes of errors, as the protocol numbers them. */
enum uar_mcp_code {
	UAR_MCP_PARSE_ERROR = -32700,
	UAR_MCP_INVALID_REQUEST = -32600,
	UAR_MCP_METHOD_NOT_FOUND = -32601,
	UAR_MCP_INVALID_PARAMS = -32602,
	UAR_MCP_INTERNAL_ERROR = -32603,
	UAR_MCP_REQUEST_CANCELLED = -32800,  /* answers $/cancelRequest */
	UAR_MCP_RESOURCE_NOT_FOUND = -32002, /* 2025-11-25 and before */
	UAR_MCP_HEADER_MISMATCH = -32020,    /* this and below: 2026-07-28 */
	UAR_MCP_MISSING_CAPABILITY = -32021,
	UAR_MCP_UNSUPPORTED_VERSION = -32022,
};

/* Strings and trees borrow from the text and the arena. */
struct uar_mcp_message {
	enum uar_mcp_kind kind;
	uar_str id;	/* JSON text; of REQUEST, RESULT, and ERROR, where it may be "null" */
	uar_str method; /* of REQUEST and NOTIFICATION */
	const struct uar_json *params; /* an object, or NULL */
	const struct uar_json *result; /* of RESULT: an object */
	struct {
		int64_t code;
		uar_str message;
		const struct uar_json *data; /* or NULL */
	} error;			     /* of ERROR */
};

/* error->code says what is wrong: UAR_ESYNTAX and other errors of the JSON reader: no JSON;
 * UAR_EINVALID: JSON, but no message. *out has the id in the second case, if one can be
 * read, for the answer; "null" otherwise. */
UAR_MUST_CHECK uar_err uar_mcp_message_read(uar_str text, struct uar_arena *arena,
					    struct uar_mcp_message *out, struct uar_error *error);

/* Each writes one whole object into `out`. Texts of JSON are spliced; empty `params` are left
 * out. */
UAR_MUST_CHECK uar_err uar_mcp_write_request(struct uar_buf *out, uar_str id, uar_str method,
					     uar_str params);
UAR_MUST_CHECK uar_err uar_mcp_write_notification(struct uar_buf *out, uar_str method,
						  uar_str params);
UAR_MUST_CHECK uar_err uar_mcp_write_result(struct uar_buf *out, uar_str id, uar_str result);
/* An empty id is written as null; empty `data` is left out. */
UAR_MUST_CHECK uar_err uar_mcp_write_error(struct uar_buf *out, uar_str id, int code,
					   uar_str message, uar_str data);

#endif
