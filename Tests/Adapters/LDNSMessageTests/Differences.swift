import DNSMessage

/// Where our view and ldns disagree, and why that is right. Everything else is a failure of the tests that compare them.
enum Differences {
    /// What we refuse although ldns takes it.
    static let stricter: Set<DNSMessageError> = [
        // Two questions are no query that anybody answers (RFC 9619 §4).
        .invalidQuestionCount,
        // ldns follows pointers in any direction and counts its steps. RFC 1035 §4.1.4 only has prior occurrences, and walks over those
        // end without counting. What is in the header is no name at all.
        .forwardPointer, .pointerIntoHeader,
        // What is no name can change while an answer is kept, a TTL above all, and a name with it that policy has already seen.
        .pointerToNoName,
        // ldns allows as many pointers as there are offsets. A name of 127 labels needs no more than 127.
        .tooManyPointers,
        // ldns reads names in data up to the end of the message, and goes on with the next record wherever the name ended: data that
        // says one length and has another would be read in two ways, by us and by whoever gets the bytes from us.
        .truncatedName,
        // ldns takes records without any data or with their last fields missing, which its accessors then do not find, and it goes on
        // in the middle of data that is too long.
        .invalidRecordDataLength,
        // RFC 4034 §4.1.2 has blocks of 1 to 32 bytes in ascending order; ldns looks at them only to print them.
        .invalidTypeBitmap,
        // RFC 9460 §2.2: who reads an RRset with such a record has to reject it whole. ldns looks at the values only to print them.
        .invalidServiceParameters, .invalidServiceParameterValue,
        // ldns keeps the last OPT record wherever it is and whoever owns it; RFC 6891 §6.1.1 allows one, in one place, of the root.
        .repeatedOPT, .misplacedOPT, .namedOPT,
        // ldns keeps options as bytes. One that is cut is a format error (RFC 6891 §6.1.2).
        .truncatedOption,
        // ldns leaks memory on two TSIG records; RFC 8945 §5.1 allows one, as the last record.
        .misplacedTSIG,
    ]

    /// The same, with what the list of malformed answers has no example of: a string that goes beyond its data in a type that ldns
    /// reads otherwise.
    static let stricterInMutations: Set<DNSMessageError> = stricter.union([.stringBeyondRecordData])

    /// The types whose data we take as opaque and ldns does not always take: the adapter keeps them from it.
    static let opaqueTypes: Set<UInt16> = [23, 40, 55]
}
