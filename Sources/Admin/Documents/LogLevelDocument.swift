/// `{"level": "info"}`: the least severe message that is logged.
package struct LogLevelDocument: Hashable, Sendable {
    package var level: String

    package init(_ level: String) {
        self.level = level
    }

    package static let levels = [
        "trace", "debug", "info", "notice", "warning", "error", "critical",
    ]
    package static let bodyBytesMax = 1_024

    package var json: JSON { ["level": .text(level)] }

    static let schema = JSONSchema.object(.required("level", JSONSchema.enumeration(levels)))
}

extension LogLevelDocument: Decodable {
    /// - Throws: ``RequestBodyError``, or the decoder's own errors.
    package init(from decoder: any Decoder) throws {
        let object = try StrictKeyedContainer(decoder, allowedKeys: ["level"])
        let allowed = Self.levels.joined(separator: ", ")
        guard let level = try object.string("level"), Self.levels.contains(level) else {
            throw RequestBodyError.invalidValue("level", allowed: allowed)
        }
        self.level = level
    }
}
