import Ground

/// An operator's pattern of transformed URLs, such as `/thumbs/{size}/{original*}` or
/// `/resize?src={url}`.
///
/// Text stands for itself, byte by byte. A place in braces stands for one byte or more:
///
/// - `{name}`, of letters, digits, `-` and `_`, for anything within a segment of the path, or for
///   the whole value of a parameter;
/// - `{original}` for the original, escaped: a URL, or a path of the site's own;
/// - `{url}` for the same where a path is not enough;
/// - `{original*}` and `{url*}` for the original over any number of segments. It is a part of the
///   path as it stands, unless it begins with an escaped `http:`; then it was escaped as a whole.
///
/// One of the last four stands in every template, once. The last place of the path takes all up to
/// the text behind it; each before it ends where the byte that follows it in the template first
/// stands. So a target is matched in one pass without turning back.
///
/// Behind a question mark stand the parameters that are needed, each `name=text` or `name={place}`,
/// in whatever order they are sent; others are of no account, and one that is sent twice means
/// nothing. Without a question mark the target's query is of no account. `?*` says that it belongs
/// to the original in the path.
struct OriginalTemplate: Hashable, Sendable {
    /// What a pair of braces stands for.
    struct Placeholder: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case anything
            case original
            /// An original that must bring its host.
            case url
        }

        /// As it was written, without braces and star.
        var name: String
        /// Over any number of segments.
        var isStarred = false

        var kind: Kind {
            switch name {
            case "original": .original
            case "url": .url
            default: .anything
            }
        }
    }

    /// A part of the path, or the value of a parameter.
    enum Piece: Hashable, Sendable {
        case text([UInt8])
        case placeholder(Placeholder)
    }

    struct Parameter: Hashable, Sendable {
        var name: [UInt8]
        var value: Piece
    }

    enum Query: Hashable, Sendable {
        case ignored
        case ofOriginal
        case parameters([Parameter])
    }

    /// Begins with text; no two places and no two texts are neighbours.
    var path: [Piece]
    var query: Query
}

extension OriginalTemplate.Placeholder: CustomStringConvertible {
    var description: String { "{\(name)\(isStarred ? "*" : "")}" }
}

extension OriginalTemplate.Piece: CustomStringConvertible {
    var description: String {
        switch self {
        case .text(let text): String(decoding: text, as: UTF8.self)
        case .placeholder(let place): place.description
        }
    }
}

extension OriginalTemplate: CustomStringConvertible {
    /// Exactly as it was written.
    var description: String {
        let start = path.map(\.description).joined()
        switch query {
        case .ignored: return start
        case .ofOriginal: return start + "?*"
        case .parameters(let parameters):
            let texts = parameters.map {
                "\(String(decoding: $0.name, as: UTF8.self))=\($0.value)"
            }
            return start + "?" + texts.joined(separator: "&")
        }
    }
}

extension OriginalTemplate {
    /// What the target says of its original; nil if it does not look like the template, or if what
    /// should be escaped is not.
    func reference(_ target: SplitTarget, of origin: BaseURL) -> OriginalReference? {
        var found: Match?
        guard matches(target.path, &found), matches(target, &found), let found,
            var text = text(of: found)
        else { return nil }
        if query == .ofOriginal, let query = target.query {
            text += [UInt8(ascii: "?")] + query
        }
        let base = found.placeholder.kind == .original ? OriginalBase(origin) : nil
        return OriginalReference(text: text, base: base)
    }

    /// Where an original was found.
    private struct Match {
        var placeholder: Placeholder
        var value: ArraySlice<UInt8>
        var isInQuery = false
    }

    private func text(of found: Match) -> [UInt8]? {
        let isRaw = found.placeholder.isStarred && !PercentEncoding.isEscapedURL(found.value)
        if isRaw { return Array(found.value) }
        return PercentEncoding.decoded(found.value, plusIsSpace: found.isInQuery)
    }

    private func matches(_ target: ArraySlice<UInt8>, _ found: inout Match?) -> Bool {
        var rest = target
        let last = path.lastIndex { if case .placeholder = $0 { true } else { false } }
        for (index, piece) in path.enumerated() {
            switch piece {
            case .text(let text):
                guard rest.starts(with: text) else { return false }
                rest = rest.dropFirst(text.count)
            case .placeholder(let place):
                let next = text(at: index + 1)
                let value =
                    index == last
                    ? rest.dropLast(next.count) : Self.prefix(of: rest, before: next.first)
                guard !value.isEmpty, place.isStarred || !value.contains(UInt8(ascii: "/"))
                else { return false }
                rest = rest[value.endIndex...]
                if place.kind != .anything { found = Match(placeholder: place, value: value) }
            }
        }
        return rest.isEmpty
    }

    /// The text at `index` of the path; empty at its end.
    private func text(at index: Int) -> [UInt8] {
        if index < path.count, case .text(let text) = path[index] { text } else { [] }
    }

    /// At least one byte, then all before `stop`.
    private static func prefix(
        of text: ArraySlice<UInt8>, before stop: UInt8?
    ) -> ArraySlice<UInt8> {
        text[..<(text.dropFirst().firstIndex { $0 == stop } ?? text.endIndex)]
    }

    private func matches(_ target: SplitTarget, _ found: inout Match?) -> Bool {
        guard case .parameters(let wanted) = query else { return true }
        var values: [ArraySlice<UInt8>?] = Array(repeating: nil, count: wanted.count)
        for parameter in target.parameters {
            guard let index = wanted.firstIndex(where: { parameter.name.elementsEqual($0.name) })
            else { continue }
            guard values[index] == nil else { return false }
            values[index] = parameter.value
        }
        for (parameter, value) in zip(wanted, values) {
            guard let value else { return false }
            switch parameter.value {
            case .text(let text):
                guard value.elementsEqual(text) else { return false }
            case .placeholder(let place):
                guard !value.isEmpty else { return false }
                guard place.kind != .anything else { continue }
                found = Match(placeholder: place, value: value, isInQuery: true)
            }
        }
        return true
    }
}
