package import Ground

/// The validators of stored answers, to ask the origin whether one of them still holds (RFC 9111
/// §4.3.1).
///
/// Empty if there are none: then the origin is asked for the answer without condition.
package struct Validation: Hashable, Sendable {
    /// The tags, each once, with quotes and `W/`.
    package private(set) var entityTags: [[UInt8]] = []
    /// Last-Modified of the only stored answer, as the origin wrote it; empty if there is none.
    package private(set) var lastModified: [UInt8] = []
    /// How many answers were added.
    private var count = 0

    /// How many tags are sent at most; those of answers added first.
    package static let tagsMax = 16

    package init() {}

    package var isEmpty: Bool { entityTags.isEmpty && lastModified.isEmpty }

    /// Takes note of a stored answer with these rendered bytes; the most recent comes first.
    package mutating func add(_ bytes: [UInt8], facts: EntryFacts) {
        count += 1
        let tag = Array(bytes[facts.entityTag.range])
        if !tag.isEmpty, !entityTags.contains(tag), entityTags.count < Self.tagsMax {
            entityTags.append(tag)
        }
        // One date cannot stand for several answers; with tags it would not count (RFC 9110
        // §13.1.3).
        lastModified = []
        if count == 1, facts.lastModified != nil {
            let span = bytes.span
            let line = StoredHead.lines(bytes).first { $0.id == .lastModified }
            if let line { lastModified = span.copy(line.value.range) }
        }
    }

    /// Appends If-None-Match and If-Modified-Since.
    func append(to bytes: inout [UInt8]) {
        if let first = entityTags.first {
            bytes.append(contentsOf: "If-None-Match: ".utf8)
            bytes.append(contentsOf: first)
            for tag in entityTags.dropFirst() {
                bytes.append(contentsOf: ", ".utf8)
                bytes.append(contentsOf: tag)
            }
            bytes.appendLineEnd()
        }
        if !lastModified.isEmpty {
            bytes.append(contentsOf: "If-Modified-Since: ".utf8)
            bytes.append(contentsOf: lastModified)
            bytes.appendLineEnd()
        }
    }
}
