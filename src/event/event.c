/* event.c - names of ids and classes. */
#include "event/event.h"

const char *uar_id_field(enum uar_id id)
{
	static const char *const fields[UAR_ID_COUNT] = {
#define I(NAME, FIELD) [UAR_ID_##NAME] = FIELD,
#include "event/ids.def"
#undef I
	};
	return fields[id];
}

#define ID(NAME)  UAR_ID_BIT(UAR_ID_##NAME)
#define IDS(NAME) UAR_IDS_##NAME
const struct uar_event_info uar_event_info[UAR_EV_COUNT] = {
#define X(NAME, TYPE, IDS, MODELS, DOC) [UAR_EV_##NAME] = { TYPE, IDS, MODELS, DOC },
#include "event/event.def"
#undef X
	[UAR_EV_VENDOR] = { "vendor", UAR_IDS_RUNTIME, "",
			    "An event of somebody else's vocabulary; any object is its payload." },
};

/* The rows are in order of their types, so the classes are too. */
static const uar_str types[UAR_EV_VENDOR] = {
#define X(NAME, TYPE, IDS, MODELS, DOC) [UAR_EV_##NAME] = { TYPE, sizeof(TYPE) - 1 },
#include "event/event.def"
#undef X
};

bool uar_event_is_turn_input(const struct uar_event *ev)
{
	return ev->cls == UAR_EV_VENDOR && uar_str_is(ev->type, UAR_EV_TYPE_TURN_INPUT);
}

/* "vendor.<name>.<rest>", neither empty. */
static bool is_vendor(uar_str type)
{
	uar_str rest;

	if (!uar_str_starts(type, UAR_STR("vendor.")) || !uar_str_is_id(type))
		return false;
	return uar_str_cut(uar_str_from(type, 7), '.', &rest).n > 0 && rest.n > 0;
}

enum uar_event_class uar_event_class_of(uar_str type)
{
	size_t low = 0, high = UAR_EV_VENDOR;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = uar_str_cmp(type, types[mid]);

		if (order == 0)
			return (enum uar_event_class)mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return is_vendor(type) ? UAR_EV_VENDOR : UAR_EV_COUNT;
}

uar_str uar_event_type(const struct uar_event *ev)
{
	return ev->cls < UAR_EV_VENDOR ? types[ev->cls] : ev->type;
}
