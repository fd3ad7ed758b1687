package import Admin
import FoundationEssentials
package import Ground
import HTTPRules
import NIOCore

/// A client of one node's admin port.
package struct NodeClient: Sendable {
    package let place: AskedPlace
    /// Or that there are none, which each question ends with.
    private let addresses: Result<[SocketAddress], AskingFailure>
    private let token: [UInt8]?
    /// For each answer.
    let limit: Interval
    private let limitText: String

    /// Looks the place's name up.
    ///
    /// `limit` is for each answer, and `limitText` what faults call it.
    package init(
        _ place: AskedPlace, token: [UInt8]?, within limit: Interval, as limitText: String
    ) {
        self.place = place
        self.token = token
        self.limit = limit
        self.limitText = limitText
        addresses = place.resolved
    }

    /// The operator has something to prove, which is for those alone whom it has named.
    var hasToken: Bool { token != nil }

    /// The same at another place, to which nothing is proven.
    func asking(_ place: AskedPlace) -> NodeClient {
        NodeClient(place, token: nil, within: limit, as: limitText)
    }

    // MARK: Questions

    /// The question of an operation; `arguments` are for the parameters in its path.
    package static func question(
        _ name: AdminOperation.Name, _ arguments: [String] = [],
        query: [(name: String, value: String)] = [], body: JSON? = nil
    ) -> Question {
        let row = AdminOperation.row(name)
        var rest = arguments[...]
        let segments = row.path.split(separator: "/", omittingEmptySubsequences: false).map {
            $0.hasPrefix("{") ? PercentText.encoded(rest.popFirst() ?? "") : String($0)
        }
        let pairs = query.map { "\($0.name)=\(PercentText.encoded($0.value))" }
        let target =
            segments.joined(separator: "/") + (pairs.isEmpty ? "" : "?")
            + pairs.joined(separator: "&")
        return Question(row.method, target, body: body.map { Array($0.line.utf8) } ?? [])
    }

    /// Begins to ask; `patience` is how much longer than otherwise the answer may take.
    func begin(_ question: Question, patience: Interval = .zero) -> Exchange {
        var question = question
        if let token {
            question.fields.append(
                .init(
                    name: "Authorization",
                    value: "Bearer \(String(decoding: token, as: UTF8.self))"))
        }
        return Exchange(
            question, at: place, by: addresses, until: SystemClock.now() + limit + patience)
    }

    func url(_ question: Question) -> String { "http://\(place)\(question.path)" }

    // MARK: Answers

    /// What came of an exchange that is over.
    func answer(of exchange: Exchange) throws(CommandFault) -> Answer {
        let url = url(exchange.question)
        switch exchange.outcome {
        case .success(let answer) where answer.isSuccess: return answer
        case .success(let answer): throw CommandFault(answer, asking: url)
        case .failure(let failure): throw CommandFault(failure, asking: url, within: limitText)
        case nil: preconditionFailure("\(url) is still being asked")
        }
    }

    /// The document in an answer.
    func document<Document: Decodable>(
        _: Document.Type, in answer: Answer, to question: Question
    ) throws(CommandFault) -> Document {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(answer.body))
        else { throw .notNode(url(question)) }
        return document
    }

    /// The document that an exchange has brought.
    func document<Document: Decodable>(
        _ type: Document.Type, of exchange: Exchange
    ) throws(CommandFault) -> Document {
        try document(type, in: try answer(of: exchange), to: exchange.question)
    }

    /// Asks, and waits for the answer.
    func ask(
        _ question: Question, patience: Interval = .zero
    ) throws(CommandFault) -> Answer {
        let exchange = begin(question, patience: patience)
        Exchange.advance([exchange])
        return try answer(of: exchange)
    }

    /// Asks, and waits for the document.
    package func ask<Document: Decodable>(
        _ question: Question, for type: Document.Type
    ) throws(CommandFault) -> Document {
        try document(type, in: try ask(question), to: question)
    }
}

extension PercentText {
    /// `text` so that it is one parameter, or one segment of a path, whatever it holds.
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
