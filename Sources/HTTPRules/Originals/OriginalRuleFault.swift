/// Why a text is no ``OriginalRule``.
package struct OriginalRuleFault: Error, Hashable, Sendable {
    package enum Problem: Hashable, Sendable {
        case empty
        case tooLong
        /// The first word is the name of no service, and no template.
        case service
        /// A word behind the first is neither a path nor a URL of http.
        case word
        /// A path is given twice, or to a template, which has its own.
        case pathDoubled
        /// A path holds what a path does not, or ends in a slash.
        case path
        case baseDoubled
        /// A URL that is none, or has a query or a fragment.
        case base
        /// A byte that stands in targets only as an escape.
        case byte
        case braceNotClosed
        case braceNotOpened
        /// What is in the braces is no name.
        case name
        case nameDoubled
        /// A place follows a place: where the first ends would be anybody's guess.
        case neighbours
        case originalMissing
        case originalDoubled
        /// A place that is no original takes more than a segment.
        case starOfName
        case starInQuery
        /// A place follows one that takes any number of segments.
        case behindStar
        /// A part of the query is not `name=…`.
        case parameter
        case parameterDoubled
        case parametersTooMany
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
        let (what, allowed) = problem.words
        return "at byte \(offset): \(what); allowed: \(allowed)"
    }
}

extension OriginalRuleFault.Problem {
    fileprivate var words: (what: String, allowed: String) {
        switch self {
        case .empty: ("nothing is said", OriginalRule.allowed)
        case .tooLong:
            ("the rule is too long", "\(OriginalRule.bytesMax) bytes")
        case .service: ("this is no service and no template", OriginalRule.allowed)
        case .word: ("this is no path and no URL", "/PATH, http://… or https://…")
        case .pathDoubled: ("a second path", "one path behind the name of a service")
        case .path:
            ("this is no path", "/ and segments, without a slash at the end, ?, # or braces")
        case .baseDoubled: ("a second URL", "one URL")
        case .base:
            ("this is no base of URLs", "http://, https://, or a URL without a query and #")
        case .byte: ("this byte does not stand in a target", "it as an escape, such as %20")
        case .braceNotClosed: ("this brace is not closed", "{name}")
        case .braceNotOpened: ("this brace was not opened", "{name}")
        case .name:
            ("what is in the braces is no name", "letters, digits, - and _, then * of an original")
        case .nameDoubled: ("this name was given before", "another name for each place")
        case .neighbours: ("a place right behind a place", "text between two places")
        case .originalMissing:
            ("no place is the original's", "one of {original}, {original*}, {url}, {url*}")
        case .originalDoubled: ("a second original", "one place for it")
        case .starOfName: ("a star of another place", "{original*} or {url*}")
        case .starInQuery: ("a star in the query", "{original} or {url}, or ?* alone")
        case .behindStar: ("a place behind one with a star", "text up to the end of the path")
        case .parameter: ("this is no parameter", "name=text or name={place}, with & between them")
        case .parameterDoubled: ("this parameter was given before", "each once")
        case .parametersTooMany:
            ("one parameter too many", "\(OriginalTemplateReader.parametersMax)")
        case .value: ("the value is more than one thing", "text, or one place")
        }
    }
}
