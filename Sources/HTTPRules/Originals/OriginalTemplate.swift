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
