package import Ground

/// A rule by which the transformed URLs of a site name the originals of their images.
///
/// An operator writes a service, its path if it is not at the root, and the base of names without a
/// scheme: `imgproxy`, `imgproxy /img https://images.example.com/`, `thumbor https://`. Or a
/// template, optionally followed by a base: `/thumbs/{size}/{original*}`, `/resize?src={url}
/// https://`.
package struct OriginalRule: Hashable, Sendable {
    /// The image services whose URLs are understood.
    package enum Service: String, CaseIterable, Hashable, Sendable {
        case imgproxy
        case thumbor
        /// The service wsrv.nl, or images.weserv.nl.
        case weserv
        /// The image optimiser of Next.js.
        case nextjs
    }

    private enum Form: Hashable, Sendable {
        /// A service; `mount` is empty, or begins with a slash and does not end with one.
        case service(Service, mount: [UInt8])
        case template(OriginalTemplate)
    }

    /// The maximum length of a rule in bytes.
    package static let bytesMax = 1024

    /// The valid rules, for messages.
    package static let allowed =
        "imgproxy, thumbor, weserv or nextjs, or a template such as /thumbs/{size}/{original*}"

    private let form: Form
    /// The operator's base; `nil` for the default of the service or template.
    private let base: OriginalBase?

    /// Parses what an operator wrote; words are separated by spaces.
    ///
    /// - Throws: ``OriginalRuleFault`` with the offset of the first fault.
    package init(_ text: String) throws(OriginalRuleFault) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.bytesMax else {
            throw OriginalRuleFault(.tooLong, at: Self.bytesMax)
        }
        var words = bytes.split(separator: UInt8(ascii: " "))[...]
        guard let first = words.popFirst() else { throw OriginalRuleFault(.empty, at: 0) }
        let isTemplate = first.first == UInt8(ascii: "/")
        let service = Service(rawValue: String(decoding: first, as: UTF8.self))
        var mount: [UInt8]?
        var base: OriginalBase?
        for word in words {
            let start = word.startIndex
            if word.first == UInt8(ascii: "/") {
                guard mount == nil, !isTemplate else {
                    throw OriginalRuleFault(.pathDuplicated, at: start)
                }
                guard Self.isMount(word) else { throw OriginalRuleFault(.path, at: start) }
                mount = Array(word)
            } else if word.prefix(4).map(ASCII.lowercased).elementsEqual("http".utf8) {
                guard base == nil else { throw OriginalRuleFault(.baseDuplicated, at: start) }
                base = OriginalBase(word)
                guard base != nil else { throw OriginalRuleFault(.base, at: start) }
            } else {
                throw OriginalRuleFault(.unknownArgument, at: start)
            }
        }
        self.base = base
        if isTemplate {
            form = .template(try OriginalTemplateParser.read(first))
        } else if let service {
            form = .service(service, mount: mount ?? [])
        } else {
            throw OriginalRuleFault(.service, at: first.startIndex)
        }
    }

    /// Returns true for a path that has no query, no illegal bytes, and no slash at its end.
    private static func isMount(_ word: ArraySlice<UInt8>) -> Bool {
        word.last != UInt8(ascii: "/")
            && word.allSatisfy {
                $0 != UInt8(ascii: "?") && (ByteSet.target.contains($0) || $0 == UInt8(ascii: "%"))
            }
    }

    /// Returns the original's URL, normalised like the key of an image.
    ///
    /// The work is linear in the length of the target, for any input.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the target.
    ///   - range: the path and query as received; any bytes are accepted.
    ///   - origin: the site's origin, the base of originals that are named by a path.
    ///   - bytesMax: the maximum length of the URL in bytes.
    /// - Returns: `nil` if the target is not a transformed URL by this rule, or its original cannot
    ///   be parsed.
    package func original(
        of bytes: Span<UInt8>, at range: Range<Int>, origin: BaseURL,
        bytesMax: Int = CacheKey.bytesMaxDefault
    ) -> [UInt8]? {
        let target = SplitTarget(bytes.copy(range)[...])
        switch form {
        case .template(let template):
            return template.reference(target, of: origin)?.key(against: base, bytesMax: bytesMax)
        case .service(let service, let mount):
            guard let target = target.removingPrefix(mount) else { return nil }
            for reference in Self.references(target, service, of: origin) {
                let key = reference.key(against: base, bytesMax: bytesMax)
                if let key { return key }
            }
            return nil
        }
    }

    private static func references(
        _ target: SplitTarget, _ service: Service, of origin: BaseURL
    ) -> [OriginalReference] {
        switch service {
        case .imgproxy: ImgproxyTarget.references(target)
        case .thumbor: [ThumborTarget.reference(target)].compactMap(\.self)
        case .weserv: [WeservTarget.reference(target)].compactMap(\.self)
        case .nextjs: [NextImageTarget.reference(target, of: origin)].compactMap(\.self)
        }
    }
}

extension OriginalRule: CustomStringConvertible {
    /// The rule in canonical form: exactly the equal rules have equal texts.
    package var description: String {
        var words: [String] = []
        switch form {
        case .template(let template): words.append(template.description)
        case .service(let service, let mount):
            words.append(service.rawValue)
            if !mount.isEmpty { words.append(String(decoding: mount, as: UTF8.self)) }
        }
        if let base { words.append(base.description) }
        return words.joined(separator: " ")
    }
}

/// The reason why a text is not an ``OriginalRule``.
package struct OriginalRuleFault: Error, Hashable, Sendable {
    /// The kinds of faults.
    package enum Problem: Hashable, Sendable {
        case empty
        case tooLong
        /// The first word is neither the name of a service nor a template.
        case service
        /// A word after the first is neither a path nor an http URL.
        case unknownArgument
        /// A path is given twice, or to a template, which has its own.
        case pathDuplicated
        /// A path holds a byte that is not allowed, or ends in a slash.
        case path
        case baseDuplicated
        /// A base is not a URL, or has a query or a fragment.
        case base
        /// A byte is allowed in targets only as an escape.
        case unescapedByte
        case braceNotClosed
        case braceNotOpened
        /// The text in the braces is not a name.
        case name
        case nameDuplicated
        /// A placeholder follows another directly, so that the end of the first is ambiguous.
        case adjacentPlaceholders
        case originalMissing
        case originalDuplicated
        /// A placeholder that is not the original has a star.
        case wildcardNotOriginal
        case wildcardInQuery
        /// A placeholder follows one with a star.
        case afterWildcard
        /// A part of the query is not `name=…`.
        case parameter
        case parameterDuplicated
        case tooManyParameters
        /// The value of a parameter is more than a text or one placeholder.
        case value
    }

    /// The offset of the fault in the rule, in bytes.
    package let offset: Int
    /// The kind of fault.
    package let problem: Problem

    init(_ problem: Problem, at offset: Int) {
        self.problem = problem
        self.offset = offset
    }
}

extension OriginalRuleFault: CustomStringConvertible {
    /// One line with position, fault, and allowed values; without any of the rule's text.
    package var description: String {
        let (what, allowed) = problem.message
        return "at byte \(offset): \(what); allowed: \(allowed)"
    }
}

extension OriginalRuleFault.Problem {
    fileprivate var message: (what: String, allowed: String) {
        switch self {
        case .empty: ("the rule is empty", OriginalRule.allowed)
        case .tooLong:
            ("the rule is too long", "\(OriginalRule.bytesMax) bytes")
        case .service: ("this is neither a service nor a template", OriginalRule.allowed)
        case .unknownArgument: ("this is neither a path nor a URL", "/PATH, http://… or https://…")
        case .pathDuplicated: ("a second path", "one path after the name of a service")
        case .path:
            ("this is not a path", "/ and segments, without a slash at the end, ?, # or braces")
        case .baseDuplicated: ("a second URL", "one URL")
        case .base:
            ("this is not a base URL", "http://, https://, or a URL without query and fragment")
        case .unescapedByte:
            ("a URL cannot contain this byte", "a percent-encoded byte, such as %20")
        case .braceNotClosed: ("this brace is not closed", "{name}")
        case .braceNotOpened: ("this brace was not opened", "{name}")
        case .name:
            (
                "the text in the braces is not a name",
                "letters, digits, - and _, then * for an original"
            )
        case .nameDuplicated: ("this name is given twice", "a different name for each placeholder")
        case .adjacentPlaceholders:
            ("two placeholders are adjacent", "text between two placeholders")
        case .originalMissing:
            ("no placeholder is the original's", "one of {original}, {original*}, {url}, {url*}")
        case .originalDuplicated: ("a second original", "one placeholder for it")
        case .wildcardNotOriginal: ("a star on another placeholder", "{original*} or {url*}")
        case .wildcardInQuery: ("a star in the query", "{original} or {url}, or ?* alone")
        case .afterWildcard:
            ("a placeholder follows one with a star", "text up to the end of the path")
        case .parameter:
            ("this is not a parameter", "name=text or name={placeholder}, separated by &")
        case .parameterDuplicated: ("this parameter is given twice", "each parameter once")
        case .tooManyParameters:
            ("one parameter too many", "\(OriginalTemplateParser.parametersMax)")
        case .value: ("the value mixes text and placeholders", "text, or one placeholder")
        }
    }
}
