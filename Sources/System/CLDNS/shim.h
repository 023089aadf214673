#pragma once
// What Swift needs of ldns: whole messages, records, and their text. Its headers do not stand alone, hence all of them.
#include <ldns/ldns.h>
#include <stdlib.h>

// Gives back what ldns allocated for its caller.
static inline void cldns_free(void *memory) { free(memory); }

// The text of a packet with the data of all its records in the form for unknown types (RFC 3597), which never fails. The caller
// frees it.
static inline char *cldns_pkt2str_generic(const ldns_pkt *packet) {
    ldns_output_format_storage storage;
    ldns_output_format *format = ldns_output_format_init(&storage);
    ldns_rr_list *lists[] = {ldns_pkt_answer(packet), ldns_pkt_authority(packet), ldns_pkt_additional(packet)};
    for (size_t list = 0; list < 3; list++) {
        for (size_t index = 0; index < ldns_rr_list_rr_count(lists[list]); index++) {
            ldns_output_format_set_type(format, ldns_rr_get_type(ldns_rr_list_rr(lists[list], index)));
        }
    }
    char *text = ldns_pkt2str_fmt(format, packet);
    ldns_rdf_deep_free(storage.bitmap);
    return text;
}
