import Ground

/// The directives that count for an answer, and where they stood.
///
/// Of the fields that are aimed at this cache the first which is a structured dictionary and not
/// empty counts, alone: Cache-Control and Expires then mean nothing here. A field that is empty or
/// broken counts as if it were not there (RFC 9213 §2.1, §2.2).
package struct EffectiveCacheControl: Hashable, Sendable {
    /// Where the directives stood.
    package enum Source: Hashable, Sendable {
        /// `Nuthatch-Cache-Control`, this cache's own.
        case nuthatch
        /// `CDN-Cache-Control` (RFC 9213 §3.1).
        case cdn
        /// `Cache-Control`.
        case cacheControl
        /// There is no field of these.
        case none
    }

    package var source: Source
    package var control: CacheControl

    /// Expires counts: no field aimed at this cache did (RFC 9213 §2.2).
    package var usesExpires: Bool {
        switch source {
        case .nuthatch, .cdn: false
        case .cacheControl, .none: true
        }
    }

    /// A field aimed at this cache says in so many words that it may keep the answer, whatever
    /// else that answer holds: by a lifetime or `public` (RFC 9213 §2.1, RFC 9111 §7.3).
    package var isExplicitlyStorable: Bool {
        !usesExpires
            && (control.maxAge != nil || control.sMaxAge != nil
                || control.flags.contains(.isPublic))
    }

    /// The fields aimed at this cache, the nearest first, in lower case.
    package static let targetedFields: [(source: Source, name: String)] = [
        (.nuthatch, "nuthatch-cache-control"), (.cdn, "cdn-cache-control"),
    ]

    /// What counts for this answer.
    package init(_ head: ResponseHead) {
        for (source, name) in Self.targetedFields {
            guard let dictionary = Self.dictionary(in: head, named: name), !dictionary.isEmpty
            else { continue }
            self.init(source: source, control: CacheControl(dictionary))
            return
        }
        self.init(cacheControlOf: head)
    }

    /// The directives of Cache-Control, whatever is aimed at this cache.
    package init(cacheControlOf head: ResponseHead) {
        source = head.first(.cacheControl) == nil ? .none : .cacheControl
        control = CacheControl(head)
    }

    private init(source: Source, control: CacheControl) {
        self.source = source
        self.control = control
    }

    /// The dictionary in all lines of this name (RFC 9651 §4.2); nil if there are none or it is
    /// broken.
    private static func dictionary(in head: ResponseHead, named name: String)
        -> StructuredDictionary?
    {
        let bytes = head.bytes.span
        var lines: [[UInt8]] = []
        for line in head.lines where bytes.matchesIgnoringCase(name, at: line.name.range) {
            lines.append(bytes.copy(line.value.range))
        }
        if lines.isEmpty { return nil }
        let value = Array(lines.joined(separator: ", ".utf8))
        return StructuredDictionary(value.span)
    }
}
