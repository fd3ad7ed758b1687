package import Ground

/// The validators of stored responses, sent to the origin to validate one of them (RFC 9111
/// §4.3.1).
///
/// If there are none, the request is sent without conditions.
package struct Validation: Hashable, Sendable {
    /// The distinct entity tags, with quotes and `W/`.
    package private(set) var entityTags: [[UInt8]] = []
    /// The Last-Modified value of the only stored response, as the origin wrote it; empty if it has
    /// none that is usable, or if several responses were added.
    package private(set) var lastModified: [UInt8] = []
    /// The number of responses added.
    private var count = 0

    /// The maximum number of entity tags; those of the responses added first are kept.
    package static let tagsMax = 16

    /// Creates a set without validators.
    package init() {}

    /// True if there are no validators.
    package var isEmpty: Bool { entityTags.isEmpty && lastModified.isEmpty }

    /// Adds a stored response; the most recent must be added first.
    ///
    /// - Parameters:
    ///   - bytes: the rendered head of the stored response.
    ///   - metadata: its metadata.
    ///   - needsStrongDate: true to use Last-Modified only if two changes within its second cannot
    ///     look the same (RFC 9110 §8.8.2.2).
    package mutating func add(
        _ bytes: [UInt8], metadata: EntryMetadata, needsStrongDate: Bool = false
    ) {
        count += 1
        let tag = Array(bytes[metadata.entityTag.range])
        if !tag.isEmpty, !entityTags.contains(tag), entityTags.count < Self.tagsMax {
            entityTags.append(tag)
        }
        // One date cannot represent several responses; with tags it is ignored (RFC 9110 §13.1.3).
        lastModified = []
        if count == 1, metadata.lastModified != nil,
            !needsStrongDate || metadata.flags.contains(.strongDate)
        {
            let span = bytes.span
            let line = StoredHead.lines(bytes).first { $0.id == .lastModified }
            if let line { lastModified = span.copy(line.value.range) }
        }
    }

    /// The If-None-Match and If-Modified-Since lines; empty without validators.
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
