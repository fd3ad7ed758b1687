import HTTPRules

extension PurgeFault {
    /// What is wrong, where, and what is allowed.
    package var sentence: String {
        switch self {
        case .receiptName:
            return "A receipt is called by 32 hexadecimal digits, a hyphen and a number from 1, as "
                + "the answer to its purge says."
        case .receiptUnknown:
            return "The log does not hold it: it was never issued, has not come here yet, or is so "
                + "old that it was dropped."
        case .parameter(let name, let allowed):
            return "The parameter \(name) has a value that is not allowed; allowed is: \(allowed)."
        case .parameterUnknown(let name, let allowed):
            return "The parameter \(Self.shown(name)) is not known; "
                + "\(allowed.joined(separator: ", ")) can be used."
        default: return bodySentence + " Nothing was purged."
        }
    }

    private var bodySentence: String {
        switch self {
        case .bodyTooLarge:
            "The body is larger than \(PurgeRequest.bodyBytesMax) bytes, the most that is allowed; "
                + "several purges can take what one cannot."
        case .notJSON(let place):
            "\(Self.subject(place)) cannot be read as JSON (RFC 8259); an object with targets is "
                + "wanted, in UTF-8."
        case .type(let place, let wanted): "\(Self.subject(place)) must be \(wanted)."
        case .unknown(let place, let key, let allowed):
            "\(Self.subject(place)) has the key \(Self.shown(key)), which is not known; "
                + "\(allowed.joined(separator: ", ")) can be used."
        case .value(let place, let allowed):
            "\(Self.subject(place)) has a value that is not allowed; allowed is: \(allowed)."
        case .id(let place):
            "\(Self.subject(place)) must have 1 to \(PurgeRequest.idBytesMax) bytes and no control "
                + "characters."
        case .targetsMissing:
            "targets must have 1 to \(PurgeRequest.targetsMax) targets; there are none."
        case .targetsTooMany:
            "There are more than \(PurgeRequest.targetsMax) targets, the most that is allowed; "
                + "several purges can take what one cannot, and a tag or a prefix covers many URLs."
        case .target(let place, let fault): "\(Self.subject(place)): \(fault.sentence)"
        case .namesTooMany(let count):
            "The targets have \(count) names, because some are kept under a site's name, too; "
                + "\(PurgeRequest.targetsMax) are allowed. Several purges can take what one cannot."
        case .recordTooLarge(let bytesMax):
            "The targets are longer than \(bytesMax) bytes together, the most that one purge can "
                + "take; several purges can."
        case .saidTwice(let name): "\(name) is said twice; it is allowed once, in query or body."
        case .field(let name, let allowed):
            "\(name) has a value that is not allowed, or comes twice; allowed is: \(allowed)."
        case .idTaken:
            "An earlier purge with this id has other targets or another mode; a new purge needs an "
                + "id of its own."
        case .parameter, .parameterUnknown, .receiptName, .receiptUnknown: ""
        }
    }

    private static func subject(_ place: String) -> String { place.isEmpty ? "The body" : place }

    /// At most 40 characters for a person to recognise.
    private static func shown(_ text: String) -> String {
        text.count > 40 ? "\"\(text.prefix(40))…\"" : "\"\(text)\""
    }
}
