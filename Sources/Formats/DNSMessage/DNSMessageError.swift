/// Why bytes are not a DNS message, or not one that may be handled. One case for each kind of defect.
public enum DNSMessageError: Error, Hashable, Sendable {
    /// Fewer than the twelve bytes of a header: there is not even an ID to answer with.
    case truncatedHeader
    /// A query was expected and QR is set: answering could go round in circles (RFC 5625 §4.1).
    case notAQuery
    /// An answer was expected and QR is clear.
    case notAnAnswer
    /// The opcode is not QUERY.
    case unsupportedOpcode
    /// More than one question (RFC 9619 §4), or none where there has to be one.
    case invalidQuestionCount
    /// A query with records in its answer or authority section.
    case recordsInQuery
    /// The message ends before a question's type and class.
    case truncatedQuestion
    /// The question's name is compressed, in which there is nothing before it to point to.
    case compressedQuestionName

    /// A name does not end within the message or within the record data that it belongs to.
    case truncatedName
    /// A name of more than 255 octets, its length octets counted (RFC 1035 §2.3.4).
    case nameTooLong
    /// A length octet of 64 to 191: the extended and the reserved label types (RFC 6891 §5).
    case reservedLabelType
    /// A compression pointer to itself, to what is behind it, or to labels that go on where it is.
    case forwardPointer
    /// A compression pointer to something that is neither a name before it nor the end of one.
    case pointerToNoName
    /// A compression pointer into the header.
    case pointerIntoHeader
    /// More compression pointers in one name than a name has labels.
    case tooManyPointers

    /// The message ends before the fixed fields of a record that the header counts.
    case truncatedRecord
    /// A record's data is longer than what is left of the message.
    case recordDataBeyondMessage
    /// A record's data is shorter or longer than the fields that its type has.
    case invalidRecordDataLength
    /// A character string or another part with its own length is longer than what is left of the record's data.
    case stringBeyondRecordData
    /// A type bitmap with an empty or too long block, or with blocks out of order (RFC 4034 §4.1.2).
    case invalidTypeBitmap

    /// SvcParams that are cut, out of order or there twice (RFC 9460 §2.2).
    case invalidServiceParameters
    /// The value of a SvcParam does not have the form of its key (RFC 9460 §7 and §8).
    case invalidServiceParameterValue

    /// A second OPT record (RFC 6891 §6.1.1).
    case repeatedOPT
    /// An OPT record in another section than the additional one.
    case misplacedOPT
    /// An OPT record whose owner is not the root, or is a compression pointer.
    case namedOPT
    /// An option is longer than what is left of the OPT record (RFC 6891 §6.1.2).
    case truncatedOption
    /// The EDNS version is not 0 (RFC 6891 §6.1.3).
    case unsupportedEDNSVersion
    /// A client subnet option of a wrong length, family or prefix, or with bits behind its prefix (RFC 7871 §6 and §7.1.2).
    case invalidClientSubnet
    /// A cookie of a length that none has (RFC 7873 §5.2.2).
    case invalidCookie

    /// A TSIG record that is not the last of the message (RFC 8945 §5.1).
    case misplacedTSIG

    /// More bytes than the largest message, 65,535.
    case messageTooLong
    /// The output is too small for the result.
    case outputTooSmall
    /// There is a record behind the OPT record that points into it or behind it, so that it cannot be moved in place.
    case recordsBehindOPT
}

extension DNSMessageError {
    /// The code to answer a query with that has this defect; nil when it is to be dropped without an answer.
    public var responseCode: ResponseCode? {
        switch self {
        case .truncatedHeader, .notAQuery, .notAnAnswer: nil
        case .unsupportedOpcode: .notImplemented
        case .unsupportedEDNSVersion: .badVersion
        case .outputTooSmall, .messageTooLong, .recordsBehindOPT: .serverFailure
        default: .formatError
        }
    }
}
