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
    ///
    /// `needsStrongDate`: two changes within the second of its Last-Modified must not look the same
    /// (RFC 9110 §8.8.2.2).
    package mutating func add(
        _ bytes: [UInt8], metadata: EntryMetadata, needsStrongDate: Bool = false
    ) {
        count += 1
        let tag = Array(bytes[metadata.entityTag.range])
        if !tag.isEmpty, !entityTags.contains(tag), entityTags.count < Self.tagsMax {
            entityTags.append(tag)
        }
        // One date cannot stand for several answers; with tags it would not count (RFC 9110
        // §13.1.3).
        lastModified = []
        if count == 1, metadata.lastModified != nil,
            !needsStrongDate || metadata.flags.contains(.strongDate)
        {
            let span = bytes.span
            let line = StoredHead.lines(bytes).first { $0.id == .lastModified }
            if let line { lastModified = span.copy(line.value.range) }
        }
    }

    /// If-None-Match and If-Modified-Since, as far as there is something to ask with.
    package var lines: [FieldSetting] {
        var lines: [FieldSetting] = []
        if !entityTags.isEmpty {
            let value = Array(entityTags.joined(separator: ", ".utf8))
            lines.append(FieldSetting(.ifNoneMatch, "If-None-Match", value))
        }
        if !lastModified.isEmpty {
            lines.append(FieldSetting(.ifModifiedSince, "If-Modified-Since", lastModified))
        }
        return lines
    }
}
