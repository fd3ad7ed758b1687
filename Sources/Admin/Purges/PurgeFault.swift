package import HTTPRules

/// Why a purge, or a question after one, cannot be followed; nothing was purged.
///
/// Places are those of a value in the body, as `targets[3].url`; the body itself has an empty one.
package enum PurgeError: Error, Hashable, Sendable {
    case bodyTooLarge
    case invalidBody(RequestBodyError)
    case invalidID(String)
    /// There are none.
    case noTargets
    case tooManyTargets
    case invalidTarget(String, PurgeTargetFault)
    /// Targets that have several names have too many of them for one record.
    case tooManyNames(Int)
    /// The names are too long for one record.
    case recordTooLarge(bytesMax: Int)
    /// Two parameters of the query, or one and the body, say the same.
    case duplicateParameter(String)
    /// A field of a request with the method PURGE.
    case invalidField(String, allowed: String)
    /// An earlier purge with this id has other targets or another mode.
    case idConflict
    /// No text of a receipt's name.
    case invalidReceiptID
    /// The log does not hold it.
    case unknownReceipt

    /// What a decoder threw while it read a ``PurgeRequest``.
    package init(decodingError error: any Error) {
        self = error as? PurgeError ?? .invalidBody(RequestBodyError(decodingError: error))
    }
}

extension PurgeError {
    /// 400 where the request cannot be read, 413 where it is too large, 422 where it can be read
    /// and not be followed (RFC 9110 §15.5).
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
        case "purge-malformed": "The body is no JSON"
        case "admin-query": "The query cannot be followed"
        case "receipt-name": "This is no receipt's name"
        case "receipt-unknown": "There is no such receipt"
        case "purge-id-taken": "Another purge has this id"
        case "purge-too-large": "The purge is too large"
        default: "The purge is not valid"
        }
    }

    /// The answer.
    package var problem: ProblemDocument {
        ProblemDocument(status: status, name: name, title: title, detail: message)
    }
}
