package import Ground

/// How the transformed URLs of a site name the originals that their images are made from.
///
/// An operator writes a service, where it is if not at the root, and what goes before names without
/// a scheme: `imgproxy`, `imgproxy /img https://images.example.com/`, `thumbor https://`. Or a
/// template, with the same URL behind it: `/thumbs/{size}/{original*}`, `/resize?src={url}
/// https://`.
package struct OriginalRule: Hashable, Sendable {
    /// Services whose URLs are known.
    package enum Service: String, CaseIterable, Hashable, Sendable {
        case imgproxy
        case thumbor
        /// wsrv.nl, or images.weserv.nl.
        case weserv
        /// The image optimiser of Next.js.
        case nextjs
    }

    private enum Form: Hashable, Sendable {
        /// `mount` is empty, or begins with a slash and does not end with one.
        case service(Service, mount: [UInt8])
        case template(OriginalTemplate)
    }

    /// Bytes of a rule at most.
    package static let bytesMax = 1024

    /// What a rule may be.
    package static let allowed =
        "imgproxy, thumbor, weserv or nextjs, or a template such as /thumbs/{size}/{original*}"

    private let form: Form
    /// Nil for the form's own.
    private let base: OriginalBase?

    /// Reads what an operator wrote; words stand between spaces.
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

    private static func isMount(_ word: ArraySlice<UInt8>) -> Bool {
        word.last != UInt8(ascii: "/")
            && word.allSatisfy {
                $0 != UInt8(ascii: "?") && (ByteSet.target.contains($0) || $0 == UInt8(ascii: "%"))
            }
    }

    /// The original's URL, normalised as the keys of images are; nil if the target is no
    /// transformed URL by this rule, or says of its original what cannot be read.
    ///
    /// The target at `range` is path and query as they were received; any bytes will do. `origin`
    /// is the site's: originals that are named by a path are behind it, as the site's own answers
    /// are. The work grows with the target's length and no faster.
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
    /// As it can be written, in canonical form: equal rules, and only those, have one text.
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

/// Why a text is no ``OriginalRule``.
package struct OriginalRuleFault: Error, Hashable, Sendable {
    package enum Problem: Hashable, Sendable {
        case empty
        case tooLong
        /// The first word is the name of no service, and no template.
        case service
        /// A word behind the first is neither a path nor a URL of http.
        case unknownArgument
        /// A path is given twice, or to a template, which has its own.
        case pathDuplicated
        /// A path holds what a path does not, or ends in a slash.
        case path
        case baseDuplicated
        /// A URL that is none, or has a query or a fragment.
        case base
        /// A byte that stands in targets only as an escape.
        case unescapedByte
        case braceNotClosed
        case braceNotOpened
        /// What is in the braces is no name.
        case name
        case nameDuplicated
        /// A place follows a place: where the first ends would be anybody's guess.
        case adjacentPlaceholders
        case originalMissing
        case originalDuplicated
        /// A place that is no original takes more than a segment.
        case wildcardNotOriginal
        case wildcardInQuery
        /// A place follows one that takes any number of segments.
        case afterWildcard
        /// A part of the query is not `name=…`.
        case parameter
        case parameterDuplicated
        case tooManyParameters
        /// The value of a parameter is more than text or one place.
        case value
    }

    /// Bytes of the rule before what is refused.
    package let offset: Int
    package let problem: Problem

    init(_ problem: Problem, at offset: Int) {
        self.problem = problem
        self.offset = offset
    }
}

extension OriginalRuleFault: CustomStringConvertible {
    /// One line: where, what, and what is allowed; nothing of the text itself.
    package var description: String {
        let (what, allowed) = problem.message
        return "at byte \(offset): \(what); allowed: \(allowed)"
    }
}

extension OriginalRuleFault.Problem {
    fileprivate var message: (what: String, allowed: String) {
        switch self {
        case .empty: ("nothing is said", OriginalRule.allowed)
        case .tooLong:
            ("the rule is too long", "\(OriginalRule.bytesMax) bytes")
        case .service: ("this is no service and no template", OriginalRule.allowed)
        case .unknownArgument: ("this is no path and no URL", "/PATH, http://… or https://…")
        case .pathDuplicated: ("a second path", "one path behind the name of a service")
        case .path:
            ("this is no path", "/ and segments, without a slash at the end, ?, # or braces")
        case .baseDuplicated: ("a second URL", "one URL")
        case .base:
            ("this is no base of URLs", "http://, https://, or a URL without a query and #")
        case .unescapedByte:
            ("this byte does not stand in a target", "it as an escape, such as %20")
        case .braceNotClosed: ("this brace is not closed", "{name}")
        case .braceNotOpened: ("this brace was not opened", "{name}")
        case .name:
            ("what is in the braces is no name", "letters, digits, - and _, then * of an original")
        case .nameDuplicated: ("this name was given before", "another name for each place")
        case .adjacentPlaceholders: ("a place right behind a place", "text between two places")
        case .originalMissing:
            ("no place is the original's", "one of {original}, {original*}, {url}, {url*}")
        case .originalDuplicated: ("a second original", "one place for it")
        case .wildcardNotOriginal: ("a star of another place", "{original*} or {url*}")
        case .wildcardInQuery: ("a star in the query", "{original} or {url}, or ?* alone")
        case .afterWildcard: ("a place behind one with a star", "text up to the end of the path")
        case .parameter: ("this is no parameter", "name=text or name={place}, with & between them")
        case .parameterDuplicated: ("this parameter was given before", "each once")
        case .tooManyParameters:
            ("one parameter too many", "\(OriginalTemplateParser.parametersMax)")
        case .value: ("the value is more than one thing", "text, or one place")
        }
    }
}
