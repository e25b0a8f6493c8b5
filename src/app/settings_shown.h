/* settings_shown.h - settings and limits, for the owner of a server. */
#ifndef UAR_APP_SETTINGS_SHOWN_H
#define UAR_APP_SETTINGS_SHOWN_H

#include "app/config.h"

/* A JSON object: "settings" with values and where each comes from, no secret among them, and
 * "limits", those that are fixed. */
UAR_MUST_CHECK uar_err uar_settings_write(const struct uar_config_set *set, struct uar_buf *out);

#endif
