/* route_access.h - the words of the column ACCESS of route.def. */
#ifndef UAR_GATE_ROUTE_ACCESS_H
#define UAR_GATE_ROUTE_ACCESS_H

/* Is nobody asked? */
#define GATE_OPEN_TOKEN	  false
#define GATE_OPEN_OPEN	  true
#define GATE_OPEN_ANY	  false
#define GATE_OPEN_RUN	  false
#define GATE_OPEN_UPLOAD  false
#define GATE_OPEN_READ	  false
#define GATE_OPEN_ANSWER  false
#define GATE_OPEN_DEFINE  false
#define GATE_OPEN_METRICS false
#define GATE_OPEN_ADMIN	  false
/* Whose token will do as well. */
#define GATE_TOKEN_OF_TOKEN   NULL
#define GATE_TOKEN_OF_OPEN    NULL
#define GATE_TOKEN_OF_ANY     NULL
#define GATE_TOKEN_OF_RUN     "run"
#define GATE_TOKEN_OF_UPLOAD  "upload"
#define GATE_TOKEN_OF_READ    NULL
#define GATE_TOKEN_OF_ANSWER  NULL
#define GATE_TOKEN_OF_DEFINE  NULL
#define GATE_TOKEN_OF_METRICS NULL
#define GATE_TOKEN_OF_ADMIN   NULL

#endif
