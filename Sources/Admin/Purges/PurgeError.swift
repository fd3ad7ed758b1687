package import HTTPRules

/// The reason why a purge or a query for a receipt is rejected; nothing was purged.
///
/// The first text of a case is the path of the offending value, such as `targets[3].url`; the path
/// of the body itself is empty.
package enum PurgeError: Error, Hashable, Sendable {
    case bodyTooLarge
    case invalidBody(RequestBodyError)
    case invalidID(String)
    /// The list of targets is empty.
    case noTargets
    case tooManyTargets
    case invalidTarget(String, PurgeTargetFault)
    /// The targets expand to too many names for one record.
    case tooManyNames(Int)
    /// The names are too long for one record.
    case recordTooLarge(bytesMax: Int)
    /// An option is given twice: in two parameters, or in a parameter and the body.
    case duplicateParameter(String)
    /// A field of a PURGE request is invalid.
    case invalidField(String, allowed: String)
    /// An earlier purge with this id has other targets or another mode.
    case idConflict
    /// The text is not the name of a receipt.
    case invalidReceiptID
    /// The log does not hold the receipt.
    case unknownReceipt

    /// Creates the error that corresponds to an error of a ``PurgeRequest``'s decoder.
    package init(decodingError error: any Error) {
        self = error as? PurgeError ?? .invalidBody(RequestBodyError(decodingError: error))
    }
}

extension PurgeError {
    /// The status code: 400 if the request is malformed, 413 if it is too large, 422 if it is
    /// well-formed but invalid (RFC 9110 §15.5).
    ///
    /// 404 for an unknown receipt, and 409 for a conflict of ids.
    package var status: UInt16 {
        switch self {
        case .invalidBody(.invalidJSON), .duplicateParameter, .invalidField, .invalidReceiptID: 400
        case .unknownReceipt: 404
        case .idConflict: 409
        case .bodyTooLarge, .recordTooLarge: 413
        case .invalidBody, .invalidID, .noTargets, .tooManyTargets, .invalidTarget, .tooManyNames:
            422
        }
    }

    /// The name of the problem's type.
    private var name: String {
        switch self {
        case .invalidBody(.invalidJSON): "purge-malformed"
        case .duplicateParameter: "admin-query"
        case .invalidReceiptID: "receipt-name"
        case .unknownReceipt: "receipt-unknown"
        case .idConflict: "purge-id-taken"
        case .bodyTooLarge, .recordTooLarge, .tooManyTargets, .tooManyNames: "purge-too-large"
        case .invalidBody, .invalidID, .noTargets, .invalidTarget, .invalidField: "purge-invalid"
        }
    }

    private var title: String {
        switch name {
        case "purge-malformed": "The body is not JSON"
        case "admin-query": "Invalid query parameters"
        case "receipt-name": "Invalid receipt ID"
        case "receipt-unknown": "Unknown receipt"
        case "purge-id-taken": "Another purge has this ID"
        case "purge-too-large": "The purge is too large"
        default: "The purge is not valid"
        }
    }

    /// The problem document for the response.
    package var problem: ProblemDocument {
        ProblemDocument(status: status, name: name, title: title, detail: message)
    }
}

extension PurgeError {
    /// The message: the fault, its location, and the allowed values.
    package var message: String {
        switch self {
        case .invalidReceiptID:
            return "A receipt ID is 32 hexadecimal digits, a hyphen and a number from 1, as "
                + "in the response to its purge."
        case .unknownReceipt:
            return "The log does not contain it: it was never issued, has not reached this node "
                + "yet, or has expired."
        default: return requestMessage + " Nothing was purged."
        }
    }

    /// The message of a fault in a request to purge.
    private var requestMessage: String {
        switch self {
        case .bodyTooLarge:
            "The body is larger than \(PurgeRequest.bodyBytesMax) bytes; split the purge into "
                + "several."
        case .invalidBody(let fault): fault.message
        case .invalidID(let place):
            "\(RequestBodyError.subject(place)) must have 1 to \(PurgeRequest.idBytesMax) "
                + "bytes and no "
                + "control characters."
        case .noTargets:
            "targets is empty; 1 to \(PurgeRequest.targetsMax) targets are allowed."
        case .tooManyTargets:
            "There are more than \(PurgeRequest.targetsMax) targets; split the purge into "
                + "several, or use a tag or a prefix, which covers many URLs."
        case .invalidTarget(let place, let fault):
            "\(RequestBodyError.subject(place)): \(fault.message)"
        case .tooManyNames(let count):
            "The targets expand to \(count) names, because some also apply to a site; "
                + "\(PurgeRequest.targetsMax) are allowed. Split the purge into several."
        case .recordTooLarge(let bytesMax):
            "The targets are longer than \(bytesMax) bytes in total; split the purge "
                + "into several."
        case .duplicateParameter(let name):
            "\(name) is given twice; it is allowed once, in the query or in the body."
        case .invalidField(let name, let allowed):
            "\(name) has an invalid value or is given twice; allowed: \(allowed)."
        case .idConflict:
            "An earlier purge with this id has other targets or another mode; use a new "
                + "id."
        case .invalidReceiptID, .unknownReceipt: ""
        }
    }
}
