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
        default: return bodySentence + " Nothing was purged."
        }
    }

    private var bodySentence: String {
        switch self {
        case .bodyTooLarge:
            "The body is larger than \(PurgeRequest.bodyBytesMax) bytes, the most that is allowed; "
                + "several purges can take what one cannot."
        case .body(let fault): fault.sentence
        case .id(let place):
            "\(BodyFault.subject(place)) must have 1 to \(PurgeRequest.idBytesMax) bytes and no "
                + "control characters."
        case .targetsMissing:
            "targets must have 1 to \(PurgeRequest.targetsMax) targets; there are none."
        case .targetsTooMany:
            "There are more than \(PurgeRequest.targetsMax) targets, the most that is allowed; "
                + "several purges can take what one cannot, and a tag or a prefix covers many URLs."
        case .target(let place, let fault): "\(BodyFault.subject(place)): \(fault.sentence)"
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
        case .receiptName, .receiptUnknown: ""
        }
    }
}
