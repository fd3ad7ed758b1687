package import Ground
import HTTPRules

/// A purge as a client requests it: the body of `POST /admin/v1/purges`; see <doc:Purges>.
package struct PurgeRequest: Hashable, Sendable {
    /// The client's id, which makes repeats idempotent; `nil` if the node is to make one.
    package var id: [UInt8]?
    /// True if entries become stale, false if they are removed.
    package var isSoft = false
    /// The targets, 1 to ``targetsMax``.
    package var targets: [PurgeTarget]
    /// The acknowledgement to wait for; `nil` if not given.
    package var wait: PurgeAcknowledgement?
    /// The maximum wait; `nil` if not given.
    package var timeout: Interval?

    /// The maximum size of the body in bytes.
    package static let bodyBytesMax = 64 << 10
    /// The maximum number of targets of one purge; one record of the log holds them all.
    package static let targetsMax = 256
    /// The maximum length of an id in bytes.
    package static let idBytesMax = 128
    /// The allowed range of ``timeout``.
    package static let timeoutRange = Interval.zero ... .seconds(60)
    /// The timeout if none is given.
    package static let timeoutDefault = Interval.seconds(5)

    /// Creates a purge from its parts, which are not checked.
    package init(id: [UInt8]? = nil, isSoft: Bool = false, targets: [PurgeTarget]) {
        self.id = id
        self.isSoft = isSoft
        self.targets = targets
    }
}

/// The condition that the response to a purge waits for.
package enum PurgeAcknowledgement: String, CaseIterable, Sendable {
    /// No wait: the purge is applied here, and not yet synced.
    case none
    /// The purge is synced here and sent to every connected member, so that it survives a crash of
    /// this process.
    case issued
    /// No member is pending.
    case all

    /// The acknowledgement if none is given.
    package static let standard = PurgeAcknowledgement.issued

    static let allowed = allCases.map(\.rawValue).joined(separator: ", ")
}

extension PurgeRequest: Decodable {
    private enum Key: String, CaseIterable {
        case id, mode, wait
        case timeout = "timeout_ms"
        case targets
    }

    /// Decodes and checks the body of a purge.
    ///
    /// - Throws: ``PurgeError`` or ``RequestBodyError`` for an invalid body, or the decoder's own
    ///   errors if the text is not JSON; ``PurgeError/init(decodingError:)`` converts all of them.
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

    /// Returns true if `bytes` can be the id of a purge: any UTF-8 without control characters.
    static func isID(_ bytes: [UInt8]) -> Bool {
        1...idBytesMax ~= bytes.count && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Returns the targets of a body; none and too many are errors.
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

    /// Returns the target of an object, which has exactly one of the target keys.
    private static func target(_ object: StrictKeyedContainer) throws -> PurgeTarget {
        guard object.keys.count == 1, let name = object.keys.first else {
            throw RequestBodyError.invalidValue(
                object.path, allowed: "exactly one of \(targetKeys.joined(separator: ", "))")
        }
        if name == "everything" {
            guard try object.flag(name) else {
                throw RequestBodyError.invalidValue(object.path(of: name), allowed: "true")
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
