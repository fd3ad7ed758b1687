/// One case of the table: a name in words, the section that rules it, and what is said in turn.
struct TableCase: Sendable {
    var name = ""
    /// For example `9111 §5.2.2.1`.
    var section = ""
    /// Which of the node's sites is asked.
    var host = "a.example"
    var exchanges: [TableExchange] = []
}

/// One request with what the origin would answer and what is expected of it.
struct TableExchange: Sendable {
    var method = "GET"
    /// What follows the case's own path; a whole target if it begins with `=`.
    var suffix = ""
    var fields: [String] = []
    var trailers: [String] = []
    var body: String?
    /// Whether it is asked again until it is as expected, for what is done behind the client.
    var isRepeated = false
    /// What the origin answers, in turn; the last one again for requests past it.
    var answers: [TableAnswer] = []
    var expectations: [TableExpectation] = []
}

/// What the origin answers to one request.
struct TableAnswer: Sendable {
    enum Ending: String, Sendable {
        case whole
        /// The connection is closed without an answer.
        case close
        /// It is reset without an answer.
        case reset
        /// Nothing ever comes.
        case hang
        /// The connection is closed in the middle of the body.
        case cut
    }

    var status = 200
    var reason = ""
    var fields: [String] = []
    var trailers: [String] = []
    /// The body; nil for one that names the answer by its number.
    var body: String?
    var hasDate = true
    /// Whether the body ends with the connection instead of by a length.
    var isEndedByClose = false
    var ending = Ending.whole
    /// Interim answers before it.
    var interim: [TableAnswer] = []

    /// Whether an answer of this status has a body.
    var hasBody: Bool { status >= 200 && status != 204 && status != 304 }

    func has(_ name: String) -> Bool {
        fields.contains { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }
}

/// What a field's value is to be; several lines count as one, joined by `, `.
enum TableMatch: Sendable {
    case absent
    case present
    case equal(String)
    case contains(String)
    case lacks(String)

    func holds(_ values: [String]) -> Bool {
        let value = values.joined(separator: ", ")
        return switch self {
        case .absent: values.isEmpty
        case .present: !values.isEmpty
        case .equal(let text): !values.isEmpty && value == text
        case .contains(let text): !values.isEmpty && value.contains(text)
        case .lacks(let text): !value.contains(text)
        }
    }
}

/// One thing that is expected of an exchange.
enum TableExpectation: Sendable {
    /// The origin is asked once, without a condition of the node's own, and its answer is given.
    case fetched
    /// The origin is not asked.
    case cached
    /// The origin is asked once whether what is stored still holds.
    case validated
    /// What is stored is given, and the origin is asked once behind it.
    case background
    /// The origin is asked once and fails, and what is stored is given in place of that.
    case stale
    /// The origin is asked so often.
    case asked(ClosedRange<Int>)
    case status(Int)
    case field(String, TableMatch)
    case trailer(String, TableMatch)
    /// An interim answer of that status was relayed, with this field if one is named.
    case interim(Int, String?)
    case age(ClosedRange<Int>)
    /// The body is that of the origin's answer of this number, from 1 in each case.
    case answer(Int)
    case body(String)
    /// The answer may break off.
    case breakable
    /// A parameter of the node's own member of Cache-Status.
    case cacheStatus(String, TableMatch)
    /// The last request that the origin got in this exchange.
    case originField(String, TableMatch)
    case originTarget(String)
    case originMethod(String)
    case originBody(String)
    case originTrailer(String, TableMatch)
}
