import Ground
import RawStructuredFieldValues

/// The directives that apply to a response, and the field they came from.
///
/// The first targeted field that is a structured dictionary and not empty applies alone:
/// Cache-Control and Expires are then ignored. An empty or malformed targeted field counts as
/// absent (RFC 9213 §2.1, §2.2).
package struct EffectiveCacheControl: Hashable, Sendable {
    /// The field that held the directives.
    package enum Source: Hashable, Sendable {
        /// The field `Nuthatch-Cache-Control`, specific to this cache.
        case nuthatch
        /// The field `CDN-Cache-Control` (RFC 9213 §3.1).
        case cdn
        /// The field `Cache-Control`.
        case cacheControl
        /// No such field is present.
        case none
    }

    /// The field that held the directives.
    package var source: Source
    /// The directives.
    package var control: CacheControl

    /// True if Expires applies, because no targeted field does (RFC 9213 §2.2).
    package var usesExpires: Bool {
        switch source {
        case .nuthatch, .cdn: false
        case .cacheControl, .none: true
        }
    }

    /// True if a targeted field permits storing explicitly, by a lifetime or `public`, whatever
    /// else the response holds (RFC 9213 §2.1, RFC 9111 §7.3).
    package var isExplicitlyStorable: Bool {
        !usesExpires
            && (control.maxAge != nil || control.sMaxAge != nil
                || control.flags.contains(.isPublic))
    }

    /// The targeted fields, the most specific first, with names in lower case.
    package static let targetedFields: [(source: Source, name: String)] = [
        (.nuthatch, "nuthatch-cache-control"), (.cdn, "cdn-cache-control"),
    ]

    /// Determines the directives that apply to the response with this head.
    package init(_ head: ResponseHead) {
        for (source, name) in Self.targetedFields {
            guard let dictionary = Self.dictionary(in: head, named: name), !dictionary.isEmpty
            else { continue }
            self.init(source: source, control: CacheControl(dictionary))
            return
        }
        self.init(cacheControlOf: head)
    }

    /// Determines the directives of Cache-Control alone, ignoring targeted fields.
    package init(cacheControlOf head: ResponseHead) {
        source = head.first(.cacheControl) == nil ? .none : .cacheControl
        control = CacheControl(head)
    }

    private init(source: Source, control: CacheControl) {
        self.source = source
        self.control = control
    }

    /// The maximum number of commas and semicolons in a targeted field, far above what any has: the
    /// cost of a dictionary grows with the square of its keys.
    private static let separatorsMax = 1024
    /// The maximum size of a targeted field in bytes: items of inner lists, which spaces separate,
    /// cost microseconds each, and an event loop waits for all.
    private static let bytesMax = 8192

    /// Returns the dictionary of all lines with this name (RFC 9651 §4.2); `nil` if there are none,
    /// or it is malformed or exceeds a limit.
    private static func dictionary(in head: ResponseHead, named name: String)
        -> OrderedMap<String, ItemOrInnerList>?
    {
        let bytes = head.bytes.span
        var lines: [[UInt8]] = []
        for line in head.lines where bytes.matchesIgnoringCase(name, at: line.name.range) {
            lines.append(bytes.copy(line.value.range))
        }
        if lines.isEmpty { return nil }
        let value = Array(lines.joined(separator: ", ".utf8))
        guard value.count <= bytesMax else { return nil }
        let separators = value.count { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") }
        guard separators <= separatorsMax else { return nil }
        var parser = StructuredFieldValueParser(value)
        return try? parser.parseDictionaryFieldValue()
    }
}
