import Ground

/// An operator's pattern of transformed URLs, such as `/thumbs/{size}/{original*}` or
/// `/resize?src={url}`.
///
/// Text matches itself, byte by byte. A placeholder in braces matches one byte or more:
///
/// - `{name}`, of letters, digits, `-` and `_`, matches anything within a segment of the path, or
///   the whole value of a parameter;
/// - `{original}` matches the original, escaped: a URL, or a path of the site;
/// - `{url}` matches the original like `{original}`, but a path is not accepted;
/// - `{original*}` and `{url*}` match the original over any number of segments. The value is taken
///   verbatim, unless it begins with an escaped `http:`; then all of it is decoded.
///
/// A template has exactly one of the last four. The last placeholder of the path matches everything
/// up to the text after it; each earlier one ends at the first occurrence of the byte that follows
/// it in the template. A target is therefore matched in one pass without backtracking.
///
/// After a question mark follow the required parameters, each `name=text` or `name={placeholder}`,
/// which a target may have in any order. Other parameters are ignored; a target with one of them
/// twice does not match. Without a question mark the target's query is ignored. `?*` makes the
/// query a part of the original in the path.
struct OriginalTemplate: Hashable, Sendable {
    /// The content of a pair of braces.
    struct Placeholder: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case anything
            case original
            /// An original that must have a host.
            case url
        }

        /// The name as written, without braces and star.
        var name: String
        /// True if the placeholder matches any number of segments.
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
        /// Any query of a target is ignored.
        case ignored
        /// The query is a part of the original: `?*`.
        case ofOriginal
        /// A target must have these parameters, and may have others.
        case parameters([Parameter])
    }

    /// The parts of the path, beginning with text; neither placeholders nor texts are adjacent.
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
    /// The template exactly as written.
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
    /// Returns the original that the target names; `nil` if it does not match the template, or
    /// lacks required escapes.
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

    /// The value that matched the original's placeholder.
    private struct Match {
        var placeholder: Placeholder
        var value: ArraySlice<UInt8>
        var isInQuery = false
    }

    /// Returns the original, decoded unless it was matched verbatim; `nil` if an escape in it is
    /// malformed.
    private func text(of found: Match) -> [UInt8]? {
        let isRaw = found.placeholder.isStarred && !PercentEncoding.isEscapedURL(found.value)
        if isRaw { return Array(found.value) }
        return PercentEncoding.decoded(found.value, plusIsSpace: found.isInQuery)
    }

    /// Returns true if the path of a target matches; sets `found` if the original is in it.
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

    /// Returns the text at `index` of the path; empty at its end.
    private func text(at index: Int) -> [UInt8] {
        if index < path.count, case .text(let text) = path[index] { text } else { [] }
    }

    /// Returns at least one byte, then everything before `stop`.
    private static func prefix(
        of text: ArraySlice<UInt8>, before stop: UInt8?
    ) -> ArraySlice<UInt8> {
        text[..<(text.dropFirst().firstIndex { $0 == stop } ?? text.endIndex)]
    }

    /// Returns true if the query of a target matches; sets `found` if the original is in it.
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
