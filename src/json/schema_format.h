/* schema_format.h - formats that name things on the network (schema_format_net.c,
 * schema_idna.c). */
#ifndef UAR_JSON_SCHEMA_FORMAT_H
#define UAR_JSON_SCHEMA_FORMAT_H

#include "base/rand.h"
#include "json/schema_int.h"

uar_schema_format uar_format_email, uar_format_idn_email, uar_format_hostname,
	uar_format_idn_hostname, uar_format_ipv4, uar_format_ipv6, uar_format_uri,
	uar_format_uri_reference, uar_format_iri, uar_format_iri_reference, uar_format_uri_template;

/* One label of a host name in Unicode: IDNA 2008 without the rules for direction. */
bool uar_idna_label_valid(uar_str label);
/* The label behind "xn--", decoded to UTF-8; false when it is not Punycode. */
bool uar_idna_decode(uar_str ascii, struct uar_buf *out);

#endif
