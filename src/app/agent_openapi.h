/* agent_openapi.h - `uar agent openapi DOCUMENT [OPERATION...]`. */
#ifndef UAR_APP_AGENT_OPENAPI_H
#define UAR_APP_AGENT_OPENAPI_H

#include "app/cli.h"

/* The second word is a file or a URL, further ones are patterns of operation ids. */
int uar_agent_openapi(struct uar_cli *cli);

#endif
