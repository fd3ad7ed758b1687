package import Ground
import HTTPRules

/// What a client wants to be purged, and how long it waits: the body and the query of
/// `POST /admin/v1/purges`; see <doc:Purges>.
package struct PurgeRequest: Hashable, Sendable {
    /// Makes a repeat harmless; nil if the node is to make one.
    package var id: [UInt8]?
    /// Stale at once, in place of gone.
    package var isSoft = false
    /// 1 to ``targetsMax``.
    package var targets: [PurgeTarget]
    /// Nil if the body does not say.
    package var wait: PurgeAcknowledgement?
    /// Nil if the body does not say.
    package var timeout: Interval?

    /// Bytes of a body at most.
    package static let bodyBytesMax = 64 << 10
    /// Targets of one purge at most; one record of the log holds them all.
    package static let targetsMax = 256
    /// Bytes of an id at most.
    package static let idBytesMax = 128
    /// How long a client may wait.
    package static let timeoutRange = Interval.zero ... .seconds(60)
    /// How long one waits that does not say.
    package static let timeoutDefault = Interval.seconds(5)

    package init(id: [UInt8]? = nil, isSoft: Bool = false, targets: [PurgeTarget]) {
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
    }
}

/// What an answer to a purge waits for.
package enum PurgeAcknowledgement: String, CaseIterable, Sendable {
    /// Nothing: the purge is applied here, and not yet synced.
    case none
    /// The purge is synced here and sent to every member that there is a connection with: it
    /// survives this process.
    case issued
    /// No member is pending.
    case all

    /// What is waited for if nothing is said.
    package static let standard = PurgeAcknowledgement.issued

    static let allowed = allCases.map(\.rawValue).joined(separator: ", ")
}

extension PurgeRequest: Decodable {
    private enum Key: String, CaseIterable {
        case id, mode, wait
        case timeout = "timeout_ms"
        case targets
    }

    /// Reads the body of a purge.
    ///
    /// - Throws: ``PurgeError`` or ``RequestBodyError`` for everything that is not as it has to be;
    ///   those, and the decoder's own errors where the text is no JSON, are read by
    ///   ``PurgeError/init(reading:)``.
    package init(from decoder: any Decoder) throws {
        let object = try StrictKeyedContainer(decoder, allowedKeys: Key.allCases.map(\.rawValue))
        targets = []
        if let text = try object.string(Key.id.rawValue) {
            let bytes = Array(text.utf8)
            guard PurgeRequest.isID(bytes) else {
                throw PurgeError.invalidID(object.path(of: "id"))
            }
            id = bytes
        }
        if let text = try object.string(Key.mode.rawValue) {
            guard text == "hard" || text == "soft" else {
                throw RequestBodyError.invalidValue(
                    object.path(of: "mode"), allowed: "hard or soft")
            }
            isSoft = text == "soft"
        }
        if let text = try object.string(Key.wait.rawValue) {
            guard let named = PurgeAcknowledgement(rawValue: text) else {
                throw RequestBodyError.invalidValue(
                    object.path(of: "wait"), allowed: PurgeAcknowledgement.allowed)
            }
            wait = named
        }
        if let count = try object.integer(Key.timeout.rawValue) {
            let interval = Interval.milliseconds(count)
            guard PurgeRequest.timeoutRange.contains(interval) else {
                throw RequestBodyError.invalidValue(
                    object.path(of: Key.timeout.rawValue),
                    allowed: "0 to \(PurgeRequest.timeoutRange.upperBound.milliseconds)")
            }
            timeout = interval
        }
        targets = try Self.targets(object)
    }

    /// True if `bytes` can be the id of a purge: any UTF-8 without control characters.
    static func isID(_ bytes: [UInt8]) -> Bool {
        1...idBytesMax ~= bytes.count && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private static func targets(_ object: StrictKeyedContainer) throws -> [PurgeTarget] {
        guard var list = try object.list(Key.targets.rawValue), !list.isAtEnd else {
            throw PurgeError.noTargets
        }
        var targets: [PurgeTarget] = []
        while !list.isAtEnd {
            guard targets.count < targetsMax else { throw PurgeError.tooManyTargets }
            targets.append(
                try target(StrictKeyedContainer(list.superDecoder(), allowedKeys: targetKeys)))
        }
        return targets
    }

    private static let targetKeys = ["url", "prefix", "tag", "everything"]

    private static func target(_ object: StrictKeyedContainer) throws -> PurgeTarget {
        guard object.keys.count == 1, let name = object.keys.first else {
            throw RequestBodyError.invalidValue(
                object.path, allowed: "exactly one of \(targetKeys.joined(separator: ", "))")
        }
        if name == "everything" {
            guard try object.flag(name) else {
                throw RequestBodyError.invalidValue(object.path(of: name), allowed: "true alone")
            }
            return .everything
        }
        let text = Array((try object.string(name) ?? "").utf8)
        do throws(PurgeTargetFault) {
            switch name {
            case "url": return try .url(parsing: text)
            case "prefix": return try .prefix(parsing: text)
            default: return try .tag(parsing: text)
            }
        } catch {
            throw PurgeError.invalidTarget(object.path(of: name), error)
        }
    }
}
