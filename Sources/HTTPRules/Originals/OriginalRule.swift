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
