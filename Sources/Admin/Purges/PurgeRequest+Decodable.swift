import Ground
import HTTPRules

extension PurgeRequest: Decodable {
    private enum Key: String, CaseIterable {
        case id, mode, wait
        case timeout = "timeout_ms"
        case targets
    }

    /// Reads the body of a purge.
    ///
    /// - Throws: ``PurgeFault`` or ``BodyFault`` for everything that is not as it has to be; those,
    ///   and the decoder's own errors where the text is no JSON, are read by
    ///   ``PurgeFault/init(reading:)``.
    package init(from decoder: any Decoder) throws {
        let object = try StrictObject(decoder, allowed: Key.allCases.map(\.rawValue))
        targets = []
        if let text = try object.string(Key.id.rawValue) {
            let bytes = Array(text.utf8)
            guard PurgeRequest.isID(bytes) else { throw PurgeFault.id(object.place(of: "id")) }
            id = bytes
        }
        if let text = try object.string(Key.mode.rawValue) {
            guard text == "hard" || text == "soft" else {
                throw BodyFault.value(object.place(of: "mode"), allowed: "hard or soft")
            }
            isSoft = text == "soft"
        }
        if let text = try object.string(Key.wait.rawValue) {
            guard let named = PurgeWait(rawValue: text) else {
                throw BodyFault.value(object.place(of: "wait"), allowed: PurgeWait.allowed)
            }
            wait = named
        }
        if let count = try object.integer(Key.timeout.rawValue) {
            let interval = Interval.milliseconds(count)
            guard PurgeRequest.timeouts.contains(interval) else {
                throw BodyFault.value(
                    object.place(of: Key.timeout.rawValue),
                    allowed: "0 to \(PurgeRequest.timeouts.upperBound.milliseconds)")
            }
            timeout = interval
        }
        targets = try Self.targets(object)
    }

    /// True if `bytes` can be the id of a purge: any UTF-8 without control characters.
    static func isID(_ bytes: [UInt8]) -> Bool {
        1...idBytesMax ~= bytes.count && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private static func targets(_ object: StrictObject) throws -> [PurgeTarget] {
        guard var list = try object.list(Key.targets.rawValue), !list.isAtEnd else {
            throw PurgeFault.targetsMissing
        }
        var targets: [PurgeTarget] = []
        while !list.isAtEnd {
            guard targets.count < targetsMax else { throw PurgeFault.targetsTooMany }
            targets.append(try target(StrictObject(list.superDecoder(), allowed: targetKeys)))
        }
        return targets
    }

    private static let targetKeys = ["url", "prefix", "tag", "everything"]

    private static func target(_ object: StrictObject) throws -> PurgeTarget {
        guard object.names.count == 1, let name = object.names.first else {
            throw BodyFault.value(
                object.place, allowed: "exactly one of \(targetKeys.joined(separator: ", "))")
        }
        if name == "everything" {
            guard try object.isTrue(name) else {
                throw BodyFault.value(object.place(of: name), allowed: "true alone")
            }
            return .everything
        }
        let text = Array((try object.string(name) ?? "").utf8)
        do throws(PurgeTargetFault) {
            switch name {
            case "url": return try .url(reading: text)
            case "prefix": return try .prefix(reading: text)
            default: return try .tag(reading: text)
            }
        } catch {
            throw PurgeFault.target(object.place(of: name), error)
        }
    }
}
