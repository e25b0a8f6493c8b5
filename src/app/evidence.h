/* evidence.h - documents of evidence in a terminal: made by a server, checked without one. */
#ifndef UAR_APP_EVIDENCE_H
#define UAR_APP_EVIDENCE_H

#include "app/cli.h"

bool uar_export_is_evidence(const char *word); /* "evidence", "replay", "review" */
int uar_export_evidence(struct uar_cli *cli);

#endif
