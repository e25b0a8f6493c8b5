/* serve_kb.c - the knowledge of a server. */
#include "app/serve_int.h"
#include "json/limits.h"

extern char **environ;

/* A model that cannot embed is noticed at the start, not with the first document. */
static uar_err check_embedding(const struct server *s, const char *name, struct uar_error *error)
{
	struct uar_model_target to;

	return name[0] ? uar_models_resolve(s->models, uar_str_c(name), &to, error) : UAR_OK;
}

uar_err uar_server_make_knowledge(struct server *s, struct uar_error *error)
{
	const struct uar_config *c = &s->config->value;
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_knowledge_options o = {
		.loop = s->loop,
		.embedding = c->kb_embedding,
		.models = s->models,
		.log = &s->log,
		.watch_dir = c->kb_watch_dir,
		.owner = { uar_str_c(c->tenant), uar_str_c(c->workspace), uar_str_c(c->user) },
		.env = environ,
	};
	uar_err e;

	if (!c->kb)
		return UAR_OK;
	uar_buf_printf(&dir, "%s/knowledge", c->data);
	o.dir = dir.p;
	e = dir.err ? dir.err : check_embedding(s, c->kb_embedding, error);
	if (!e)
		e = uar_server_need_client(s, error);
	o.client = s->net.client;
	if (!e)
		e = uar_knowledge_create(&o, &s->parts.knowledge, error);
	uar_buf_fini(&dir);
	return e;
}
