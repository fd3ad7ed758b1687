/// The words of the project's former private language, each with the standard term.
enum VocabularyRule {
    /// In two pieces where the word would otherwise stand in this file.
    static let terms: [(word: String, instead: String)] = [
        ("Ha" + "ll", "EventLoopContext"), ("Do" + "or", "RequestHandler"),
        ("Doorw" + "ay", "Listener"), ("Full" + "House", "OverloadHandler"),
        ("Out" + "let", "ResponseWriter"), ("Err" + "and", "InternalRequest"),
        ("Invalidation" + "Desk", "PurgeCoordinator"), ("Journal" + "Keeper", "JournalStore"),
        ("Mark" + "Book", "InvalidationIndex"), ("Stamp" + "Lease", "VersionPin"),
        ("Prog" + "nosis", "ReuseForecast"), ("Peer" + "Answering", "PeerRequestHandler"),
        ("Peer" + "Ask", "PeerRequest"), ("Holdings" + "Walk", "EntryScan"),
        ("Counted" + "Members", "VoterSetConsensus"), ("Counted" + "Set", "VoterSet"),
        ("Fill" + "Run", "ActiveFetch"), ("Fill" + "Table", "FetchTable"),
        ("Hand" + "Over", "Handoff"), ("DESIGN" + ".md", "(Design, \"Title\")"),
    ]

    /// The lines on which one of the words stands, in code, comment or literal.
    static func violations(in text: SwiftText) -> [Violation] {
        text.lines.enumerated().flatMap { index, line in
            terms.compactMap { term in
                guard stands(term.word, in: line[...]) else { return nil }
                return Violation(
                    line: index + 1, message: "\(term.word) is an old word: \(term.instead)")
            }
        }
    }

    private static func stands(_ word: String, in line: Substring) -> Bool {
        guard let range = line.place(of: word) else { return false }
        let before = line[..<range.lowerBound].last
        let after = line[range.upperBound...].first
        if !isLetter(before), !isLetter(after) { return true }
        return stands(word, in: line[range.upperBound...])
    }

    private static func isLetter(_ character: Character?) -> Bool {
        character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
    }
}
