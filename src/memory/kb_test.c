/* kb_test.c - documents are cut, kept, found by words, by vectors and by both, and removed. */
#include "memory/kb.h"

#include <sqlite3.h>

#include "base/buf.h"
#include "memory/chunk.h"
#include "memory/kb_int.h"
#include "test.h"

static const struct uar_owner ann = { UAR_STR("acme"), UAR_STR("main"), UAR_STR("ann") };
static const struct uar_owner bob = { UAR_STR("acme"), UAR_STR("main"), UAR_STR("bob") };

static struct uar_kb *in_dir(const char *dir)
{
	struct uar_kb *kb = NULL;
	struct uar_error error = { 0 };

	if (uar_kb_open(dir, NULL, &kb, &error))
		uar_test_fail(__FILE__, __LINE__, "%s", error.text);
	return kb;
}

static struct uar_kb *fresh(void)
{
	return in_dir(uar_test_dir());
}

static enum uar_kb_change put(struct uar_kb *kb, const char *collection, const char *id,
			      const char *text, const char *labels)
{
	struct uar_kb_document d = { .collection = uar_str_c(collection),
				     .id = uar_str_c(id),
				     .title = uar_str_c(id),
				     .bytes = uar_str_c(text),
				     .media_type = UAR_STR("text/markdown"),
				     .labels = uar_str_c(labels) };
	struct uar_kb_result result = { .change = UAR_KB_UNCHANGED };
	struct uar_error error = { 0 };

	if (uar_kb_put(kb, &ann, &d, &result, &error))
		uar_test_fail(__FILE__, __LINE__, "%s", error.text);
	return result.change;
}

/* The documents of the hits, with a space between two. */
struct ask {
	const struct uar_owner *owner;
	const char *collection, *text;
	enum uar_kb_mode mode;
	size_t k;
	const char *deny;
};
static bool is_partial, is_loading; /* the last answer */

#define found(KB, ...) found_by(KB, &(struct ask){ __VA_ARGS__ })
static const char *found_by(struct uar_kb *kb, const struct ask *a)
{
	static char out[400];
	uar_str name = uar_str_c(a->collection);
	struct uar_kb_query q = { .owner = *a->owner,
				  .collections = &name,
				  .collection_count = a->collection[0] != 0,
				  .text = uar_str_c(a->text),
				  .mode = a->mode,
				  .k = a->k,
				  .deny_labels = uar_str_c(a->deny) };
	struct uar_kb_hits hits;
	struct uar_arena arena;
	struct uar_error error = { 0 };
	size_t used = 0;

	out[0] = 0;
	uar_arena_init(&arena, 0);
	if (uar_kb_search(kb, &q, &arena, &hits, &error))
		uar_test_fail(__FILE__, __LINE__, "%s", error.text);
	is_partial = hits.partial;
	is_loading = hits.loading;
	for (size_t i = 0; i < hits.n; i++)
		used += (size_t)snprintf(out + used, sizeof out - used, "%s%.*s", i ? " " : "",
					 UAR_FMT(hits.at[i].document));
	uar_arena_fini(&arena);
	return out;
}

TEST(a_document_is_found_and_changes_only_when_it_does, "")
{
	struct uar_kb *kb = fresh();
	const struct uar_kb_place a = { ann, UAR_STR("a") };

	CHECK_INT(put(kb, "a", "tea", "# Brewing\nGreen tea wants water at seventy degrees.", ""),
		  UAR_KB_CREATED);
	CHECK_INT(put(kb, "a", "tea", "# Brewing\nGreen tea wants water at seventy degrees.", ""),
		  UAR_KB_UNCHANGED);
	CHECK_STR(uar_str_c(found(kb, &ann, "a", "degrees", UAR_KB_KEYWORD, 5, "")), "tea");
	CHECK_INT(put(kb, "a", "tea", "Black tea wants boiling water.", ""), UAR_KB_UPDATED);
	CHECK_STR(uar_str_c(found(kb, &ann, "a", "seventy", UAR_KB_KEYWORD, 5, "")), "");
	CHECK_STR(uar_str_c(found(kb, &ann, "a", "boiling", UAR_KB_HYBRID, 5, "")), "tea");
	CHECK_INT(uar_kb_remove(kb, &a, UAR_STR("tea"), NULL), UAR_OK);
	CHECK_INT(uar_kb_remove(kb, &a, UAR_STR("tea"), NULL), UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(found(kb, &ann, "a", "boiling", UAR_KB_HYBRID, 5, "")), "");
	uar_kb_close(kb);
}

TEST(owners_and_collections_are_apart, "")
{
	struct uar_kb *kb = fresh();

	put(kb, "o1", "d", "the zebra is striped", "");
	CHECK_STR(uar_str_c(found(kb, &bob, "o1", "zebra", UAR_KB_HYBRID, 5, "")), "");
	CHECK_STR(uar_str_c(found(kb, &ann, "o2", "zebra", UAR_KB_HYBRID, 5, "")), "");
	CHECK_STR(uar_str_c(found(kb, &ann, "", "zebra", UAR_KB_HYBRID, 5, "")), "");
	CHECK_STR(uar_str_c(found(kb, &ann, "o1", "zebra", UAR_KB_HYBRID, 5, "")), "d");
	uar_kb_close(kb);
}

TEST(better_passages_of_others_hide_none, "")
{
	struct uar_kb *kb = fresh();
	char id[16];

	for (int i = 0; i < 220; i++) { /* more than a search looks at */
		snprintf(id, sizeof id, "d%d", i);
		put(kb, "many", id, "zebra zebra zebra", "");
	}
	put(kb, "few", "mine", "a zebra among many other animals of the zoo and its gardens", "");
	CHECK_STR(uar_str_c(found(kb, &ann, "few", "zebra", UAR_KB_KEYWORD, 5, "")), "mine");
	uar_kb_close(kb);
}

TEST(at_most_k_are_found_and_denied_ones_never, "")
{
	struct uar_kb *kb = fresh();
	char id[8];

	for (int i = 0; i < 10; i++) {
		snprintf(id, sizeof id, "k%d", i);
		put(kb, "k", id, "the lighthouse of the northern coast",
		    i == 3 ? "secret unsafe" : "");
	}
	CHECK_STR(uar_str_c(found(kb, &ann, "k", "lighthouse", UAR_KB_HYBRID, 3, "unsafe")),
		  "k0 k1 k2");
	CHECK(!strstr(found(kb, &ann, "k", "lighthouse", UAR_KB_HYBRID, 50, "unsafe"), "k3"));
	CHECK(strstr(found(kb, &ann, "k", "lighthouse", UAR_KB_HYBRID, 50, "other"), "k3") != NULL);
	uar_kb_close(kb);
}

/* A word that is misspelled shares parts with the right one, and no stem. */
TEST(both_ways_find_more_than_one, "")
{
	struct uar_kb *kb = fresh();

	put(kb, "h", "words", "Invoice 4711 was paid in March.", "");
	put(kb, "h", "shape", "Reimbursements are granted within thirty days.", "");
	CHECK_STR(uar_str_c(found(kb, &ann, "h", "reimbrsement", UAR_KB_VECTOR, 5, "")), "shape");
	CHECK_STR(uar_str_c(found(kb, &ann, "h", "4711", UAR_KB_KEYWORD, 5, "")), "words");
	CHECK_STR(uar_str_c(found(kb, &ann, "h", "invoices reimbrsement", UAR_KB_KEYWORD, 5, "")),
		  "words");
	CHECK(strstr(found(kb, &ann, "h", "invoices reimbrsement", UAR_KB_HYBRID, 5, ""),
		     "shape") != NULL);
	uar_kb_close(kb);
}

TEST(operators_in_a_query_are_words, "")
{
	struct uar_kb *kb = fresh();

	put(kb, "q", "d", "NEAR the river OR the bridge", "");
	CHECK_STR(uar_str_c(found(kb, &ann, "q", "\"NEAR\" AND ( * -", UAR_KB_KEYWORD, 5, "")),
		  "d");
	CHECK_STR(uar_str_c(found(kb, &ann, "q", "*** ---", UAR_KB_HYBRID, 5, "")), "");
	uar_kb_close(kb);
}

TEST(every_denied_label_counts, "")
{
	static const char many[] = "a b c  d e f g h i j k l m n o p q r s t secret";
	struct uar_kb *kb = fresh();
	struct uar_kb_collection c = { .name = UAR_STR("deny"),
				       .policy = UAR_STR("{\"deny_labels\":\"x secret\"}") };
	struct uar_kb_relation r[] = {
		{ UAR_STR("Acme"), UAR_STR("owns"), UAR_STR("Bolt"), UAR_STR("open"),
		  UAR_STR("api"), 1 },
		{ UAR_STR("Acme"), UAR_STR("hides"), UAR_STR("gold"), UAR_STR("closed"),
		  UAR_STR("api"), 1 },
	};
	struct uar_kb_relations all = { r, ARRAY_LEN(r) }, out;
	struct uar_kb_walk walk = { { ann, UAR_STR("deny") }, UAR_STR("Acme"), 1, false };
	struct uar_kb_reading closed = { { ann, UAR_STR("deny") }, .document = UAR_STR("closed") };
	struct uar_kb_reading opened = { { ann, UAR_STR("deny") }, .document = UAR_STR("open") };
	struct uar_kb_hits hits;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	put(kb, "deny", "open", "the zebra is striped", "secrets public");
	put(kb, "deny", "closed", "the zebra is hidden", "inner secret");
	CHECK_STR(uar_str_c(found(kb, &ann, "deny", "zebra", UAR_KB_KEYWORD, 5, many)), "open");
	CHECK_STR(uar_str_c(found(kb, &ann, "deny", "zebra", UAR_KB_VECTOR, 5, many)), "open");
	CHECK_INT(uar_kb_set_collection(kb, &ann, &c, NULL), UAR_OK);
	CHECK_INT(uar_kb_relate(kb, &walk.place, &all, NULL), UAR_OK);
	CHECK_INT(uar_kb_neighbours(kb, &walk, &arena, &out, NULL), UAR_OK);
	CHECK_INT(out.n, 2);
	walk.by_policy = true;
	CHECK_INT(uar_kb_neighbours(kb, &walk, &arena, &out, NULL), UAR_OK);
	REQUIRE(out.n == 1);
	CHECK_STR(out.at[0].to, "Bolt");
	CHECK_INT(uar_kb_passages(kb, &closed, &arena, &hits, NULL), UAR_OK);
	CHECK_INT(hits.n, 1);
	closed.by_policy = opened.by_policy = true;
	CHECK_INT(uar_kb_passages(kb, &closed, &arena, &hits, NULL), UAR_OK);
	CHECK_INT(hits.n, 0);
	CHECK_INT(uar_kb_passages(kb, &opened, &arena, &hits, NULL), UAR_OK);
	CHECK_INT(hits.n, 1);
	uar_arena_fini(&arena);
	uar_kb_close(kb);
}

TEST(relations_lead_from_one_to_the_next, "")
{
	struct uar_kb *kb = fresh();
	struct uar_kb_relation r[] = {
		{ UAR_STR("Acme"), UAR_STR("owns"), UAR_STR("Bolt"), UAR_STR("d1"), UAR_STR("api"),
		  1 },
		{ UAR_STR("Bolt"), UAR_STR("makes"), UAR_STR("screws"), UAR_STR("d1"),
		  UAR_STR("api"), 1 },
		{ UAR_STR("Zed"), UAR_STR("eats"), UAR_STR("cake"), UAR_STR("d2"), UAR_STR("api"),
		  1 },
	};
	struct uar_kb_relations all = { r, ARRAY_LEN(r) }, out;
	struct uar_kb_walk walk = { { ann, UAR_STR("g") }, UAR_STR("Acme"), 1, false };
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	CHECK_INT(uar_kb_relate(kb, &walk.place, &all, NULL), UAR_OK);
	CHECK_INT(uar_kb_neighbours(kb, &walk, &arena, &out, NULL), UAR_OK);
	CHECK_INT(out.n, 1);
	walk.depth = 2;
	CHECK_INT(uar_kb_neighbours(kb, &walk, &arena, &out, NULL), UAR_OK);
	CHECK_INT(out.n, 2);
	walk.place.owner = bob;
	CHECK_INT(uar_kb_neighbours(kb, &walk, &arena, &out, NULL), UAR_OK);
	CHECK_INT(out.n, 0);
	uar_arena_fini(&arena);
	uar_kb_close(kb);
}

TEST(what_is_kept_survives_and_can_be_made_anew, "")
{
	char dir[600];
	struct uar_kb *kb;
	struct uar_kb_collections list;
	struct uar_arena arena;

	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	kb = in_dir(dir);
	put(kb, "r", "d", "a sentence about walnuts", "");
	uar_kb_close(kb);
	kb = in_dir(dir);
	CHECK_STR(uar_str_c(found(kb, &ann, "r", "walnut", UAR_KB_HYBRID, 5, "")), "d");
	CHECK_INT(uar_kb_rebuild(kb, NULL), UAR_OK);
	CHECK_STR(uar_str_c(found(kb, &ann, "r", "walnut", UAR_KB_HYBRID, 5, "")), "d");
	uar_arena_init(&arena, 0);
	CHECK_INT(uar_kb_collections(kb, &ann, &arena, &list, NULL), UAR_OK);
	CHECK_INT(list.n, 1);
	uar_arena_fini(&arena);
	uar_kb_close(kb);
}

struct gathered {
	struct uar_chunk at[64];
	size_t n;
};

static uar_err gather(void *ctx, const struct uar_chunk *c)
{
	struct gathered *g = ctx;

	if (g->n < ARRAY_LEN(g->at))
		g->at[g->n++] = *c;
	return UAR_OK;
}

TEST(passages_know_their_heading_line_and_page, "")
{
	struct gathered g = { .n = 0 };
	struct uar_buf html = uar_buf_make(1000);

	CHECK_INT(uar_chunk_text(UAR_STR("# One\nfirst\n\n## Two\r\nsecond\n\fthird page\n"),
				 UAR_CHUNK_MARKDOWN, gather, &g),
		  UAR_OK);
	REQUIRE(g.n == 3);
	CHECK_INT(g.at[2].page, 2);
	CHECK_STR(g.at[0].heading, "One");
	CHECK_INT(g.at[0].line, 1);
	CHECK_STR(g.at[1].heading, "Two");
	CHECK_INT(g.at[1].line, 4);
	uar_html_text(UAR_STR("<html><style>x{}</style><h1>Top</h1><p>a &amp; b&#33;<script>evil()"
			      "</script><!-- no --></p></html>"),
		      &html);
	CHECK(memmem(html.p, html.n, "# Top", 5) && memmem(html.p, html.n, "a & b!", 6));
	CHECK(!memmem(html.p, html.n, "evil", 4) && !memmem(html.p, html.n, "no", 2));
	uar_buf_fini(&html);
}

TEST(a_large_collection_is_read_slice_by_slice, "")
{
	struct uar_kb *kb = fresh();
	bool more = true;
	char id[8];
	int slices = 0;

	for (int i = 0; i < 5; i++) {
		snprintf(id, sizeof id, "k%d", i);
		put(kb, "k", id, "the lighthouse of the northern coast", "");
	}
	kb->reader->slice = 2;
	CHECK_STR(uar_str_c(found(kb, &ann, "k", "lighthouse", UAR_KB_VECTOR, 9, "")), "k0 k1");
	CHECK(is_partial && is_loading);
	while (more && slices < 9) {
		CHECK(uar_kb_load_more(kb, &more) == UAR_OK);
		slices++;
	}
	CHECK_INT(slices, 2);
	put(kb, "k", "k5", "the lighthouse of the southern coast", "");
	CHECK_STR(uar_str_c(found(kb, &ann, "k", "lighthouse", UAR_KB_VECTOR, 9, "")),
		  "k0 k1 k2 k3 k4 k5");
	CHECK(!is_partial && !is_loading);
	uar_kb_close(kb);
}

TEST(a_passage_is_named_by_its_digest_in_its_document, "")
{
	static const char text[] = "# One\nfirst\n\n# Two\nsecond\n";
	struct uar_kb *kb = fresh();
	struct uar_kb_reading r = { { ann, UAR_STR("a") }, .document = UAR_STR("b/\xc3\xa9.md") };
	struct uar_kb_hits all, one;
	struct uar_arena arena;
	char path[UAR_KB_PATH];

	uar_arena_init(&arena, 0);
	put(kb, "a", "b/\xc3\xa9.md", text, "");
	put(kb, "a", "other", text, "");
	CHECK_INT(uar_kb_passages(kb, &r, &arena, &all, NULL), UAR_OK);
	REQUIRE(all.n == 2);
	CHECK_INT(all.at[1].position, 1);
	uar_kb_passage_path(&all.at[1], path);
	CHECK(strstr(path, "/api/kb/a/documents/b%2F%C3%A9.md?passage=") == path);
	CHECK_INT(strlen(path), strlen("/api/kb/a/documents/b%2F%C3%A9.md?passage=") + 64);
	CHECK_INT(uar_kb_rebuild(kb, NULL), UAR_OK);
	r.sha256 = all.at[1].sha256;
	CHECK_INT(uar_kb_passages(kb, &r, &arena, &one, NULL), UAR_OK);
	REQUIRE(one.n == 1);
	CHECK_STR(one.at[0].document, "b/\xc3\xa9.md");
	CHECK_STR(one.at[0].heading, "Two");
	r.document = UAR_STR("none");
	CHECK_INT(uar_kb_passages(kb, &r, &arena, &one, NULL), UAR_OK);
	CHECK_INT(one.n, 0);
	uar_arena_fini(&arena);
	uar_kb_close(kb);
}
