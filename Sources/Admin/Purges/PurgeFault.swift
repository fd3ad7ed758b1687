package import HTTPRules

/// Why a purge, or a question after one, cannot be followed; nothing was purged.
///
/// Places are those of a value in the body, as `targets[3].url`; the body itself has an empty one.
package enum PurgeFault: Error, Hashable, Sendable {
    case bodyTooLarge
    case body(BodyFault)
    case id(String)
    /// There are none.
    case targetsMissing
    case targetsTooMany
    case target(String, PurgeTargetFault)
    /// Targets that have several names have too many of them for one record.
    case namesTooMany(Int)
    /// The names are too long for one record.
    case recordTooLarge(bytesMax: Int)
    /// Two parameters of the query, or one and the body, say the same.
    case saidTwice(String)
    /// A field of a request with the method PURGE.
    case field(String, allowed: String)
    /// An earlier purge with this id has other targets or another mode.
    case idTaken
    /// No text of a receipt's name.
    case receiptName
    /// The log does not hold it.
    case receiptUnknown

    /// What a decoder threw while it read a ``PurgeRequest``.
    package init(reading error: any Error) {
        self = error as? PurgeFault ?? .body(BodyFault(reading: error))
    }
}

extension PurgeFault {
    /// 400 where the request cannot be read, 413 where it is too large, 422 where it can be read
    /// and not be followed (RFC 9110 §15.5).
    package var status: UInt16 {
        switch self {
        case .body(.notJSON), .saidTwice, .field, .receiptName: 400
        case .receiptUnknown: 404
        case .idTaken: 409
        case .bodyTooLarge, .recordTooLarge: 413
        case .body, .id, .targetsMissing, .targetsTooMany, .target, .namesTooMany: 422
        }
    }

    private var name: String {
        switch self {
        case .body(.notJSON): "purge-malformed"
        case .saidTwice: "admin-query"
        case .receiptName: "receipt-name"
        case .receiptUnknown: "receipt-unknown"
        case .idTaken: "purge-id-taken"
        case .bodyTooLarge, .recordTooLarge, .targetsTooMany, .namesTooMany: "purge-too-large"
        case .body, .id, .targetsMissing, .target, .field: "purge-invalid"
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
        ProblemDocument(status: status, name: name, title: title, detail: sentence)
    }
}
