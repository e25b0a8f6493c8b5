/* a2ui_int.h - what the files of the A2UI encoder share. */
#ifndef UAR_PROTO_A2UI_INT_H
#define UAR_PROTO_A2UI_INT_H

#include "proto/a2ui.h"
#include "proto/view.h"

enum a2ui_kind {
	A2UI_TEXT,
	A2UI_REASONING,
	A2UI_TOOLS,
	A2UI_MEMORY,
	A2UI_SOURCES,
	A2UI_ARTIFACT,
	A2UI_FAILURE,
};

/* A child of the root of the run's surface. */
struct a2ui_section {
	enum a2ui_kind kind;
	unsigned number; /* of its kind, from 0 */
	const struct uar_view_message *message;
	uar_str json; /* SOURCES: a JSON array */
	struct a2ui_section *next;
};

struct a2ui {
	struct uar_view view;
	struct uar_dialect_options o;
	struct uar_frames *out; /* while an event is encoded */
	struct uar_arena *scratch;
	struct uar_jw w;
	int64_t time_us;
	struct a2ui_section *sections;
	const char *status;
	size_t shown;	  /* bytes of the open message that the reader has */
	int64_t shown_us; /* when they were sent */
	bool begun;
	bool rejoined; /* the reader may have surfaces that the next event creates */
};

/* a2ui.c: one message of the protocol, about a surface. */
void a2ui_open(struct a2ui *a, const char *key, uar_str surface);
uar_err a2ui_close(struct a2ui *a);
void a2ui_open_components(struct a2ui *a, uar_str surface);
uar_err a2ui_close_components(struct a2ui *a);
uar_err a2ui_create(struct a2ui *a, uar_str surface, bool sends_model);
uar_err a2ui_delete(struct a2ui *a, uar_str surface);

/* a2ui_parts.c: components; one that is open has members to come. */
void a2ui_component(struct uar_jw *w, uar_str id, const char *type);
void a2ui_text(struct uar_jw *w, uar_str id, uar_str text, const char *variant);
void a2ui_bound_text(struct uar_jw *w, uar_str id, uar_str path, const char *variant);
void a2ui_path(struct uar_jw *w, const char *key, uar_str path);
/* A button with a label that is a component of its own, "ID_label"; still open. */
void a2ui_button(struct uar_jw *w, uar_str id, const char *label, bool primary);
uar_str a2ui_section_id(const struct a2ui_section *s, char out[64]);
void a2ui_put_root(struct a2ui *a);
uar_err a2ui_put_section(struct a2ui *a, const struct a2ui_section *s);
/* The data of the run's surface, whole. */
uar_err a2ui_put_model(struct a2ui *a, const char *key);
void a2ui_put_tool(struct uar_jw *w, const char *key, const struct a2ui *a,
		   const struct uar_view_call *call);
uar_err a2ui_put_memory(struct uar_jw *w, const char *key, const struct uar_view_message *m);
uar_err a2ui_put_artifact(struct uar_jw *w, const char *key, const struct uar_view_message *m);

/* a2ui_made.c: an artifact that is an interface itself. */
bool a2ui_is_made(const struct uar_json *artifact);
/* Its messages; an error says why it may not be shown. */
UAR_MUST_CHECK uar_err a2ui_read_made(const struct uar_json *artifact, struct uar_arena *arena,
				      const struct uar_json **out, struct uar_error *error);
/* UAR_ESKIP: it may not be shown. `again`: it replaces an earlier version. */
UAR_MUST_CHECK uar_err a2ui_show_made(struct a2ui *a, const struct uar_json *artifact, bool again);

/* a2ui_field.c: the properties of an object's schema as fields of a form. */
void a2ui_put_field_ids(struct uar_jw *w, const struct uar_json *schema);    /* children */
void a2ui_put_fields(struct uar_jw *w, const struct uar_json *schema);	     /* components */
void a2ui_put_field_values(struct uar_jw *w, const struct uar_json *schema); /* data: an object */
void a2ui_put_field_checks(struct uar_jw *w, const struct uar_json *schema); /* of its button */

/* a2ui_form.c: the surface of an open question. */
uar_err a2ui_ask(struct a2ui *a, const struct uar_view_action *action);
uar_str a2ui_action_surface(struct uar_arena *arena, const struct uar_view_action *action);

#endif
