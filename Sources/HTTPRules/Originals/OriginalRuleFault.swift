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
