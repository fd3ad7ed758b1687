import HTTPRules

extension PurgeError {
    /// What is wrong, where, and what is allowed.
    package var message: String {
        switch self {
        case .invalidReceiptID:
            return "A receipt is called by 32 hexadecimal digits, a hyphen and a number from 1, as "
                + "the answer to its purge says."
        case .unknownReceipt:
            return "The log does not hold it: it was never issued, has not come here yet, or is so "
                + "old that it was dropped."
        default: return requestMessage + " Nothing was purged."
        }
    }

    private var requestMessage: String {
        switch self {
        case .bodyTooLarge:
            "The body is larger than \(PurgeRequest.bodyBytesMax) bytes, the most that is allowed; "
                + "several purges can take what one cannot."
        case .invalidBody(let fault): fault.message
        case .invalidID(let place):
            "\(RequestBodyError.subject(place)) must have 1 to \(PurgeRequest.idBytesMax) "
                + "bytes and no "
                + "control characters."
        case .noTargets:
            "targets must have 1 to \(PurgeRequest.targetsMax) targets; there are none."
        case .tooManyTargets:
            "There are more than \(PurgeRequest.targetsMax) targets, the most that is allowed; "
                + "several purges can take what one cannot, and a tag or a prefix covers many URLs."
        case .invalidTarget(let place, let fault):
            "\(RequestBodyError.subject(place)): \(fault.message)"
        case .tooManyNames(let count):
            "The targets have \(count) names, because some are kept under a site's name, too; "
                + "\(PurgeRequest.targetsMax) are allowed. Several purges can take what one cannot."
        case .recordTooLarge(let bytesMax):
            "The targets are longer than \(bytesMax) bytes together, the most that one purge can "
                + "take; several purges can."
        case .duplicateParameter(let name):
            "\(name) is said twice; it is allowed once, in query or body."
        case .invalidField(let name, let allowed):
            "\(name) has a value that is not allowed, or comes twice; allowed is: \(allowed)."
        case .idConflict:
            "An earlier purge with this id has other targets or another mode; a new purge needs an "
                + "id of its own."
        case .invalidReceiptID, .unknownReceipt: ""
        }
    }
}
