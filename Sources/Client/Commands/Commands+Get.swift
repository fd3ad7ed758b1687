import Admin
import Ground
import HTTPRules
import Telemetry

/// What is to be got where clients get it.
package struct Fetching: Sendable {
    package var url: String
    /// Nil for the node of this machine.
    package var base: String?
    /// The URL is that of a site, and its host the site's.
    package var isOfSite = false
    /// Nil for standard output.
    package var output: String?
    /// What is said of it, and not it itself.
    package var isHeadOnly = false
    /// `Name: value`.
    package var fields: [String] = []

    package init(url: String) {
        self.url = url
    }

    static let clientPort: UInt16 = 8080

    /// The request.
    func question() throws(CommandFault) -> Question {
        guard let (authority, target) = parts,
            url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw CommandFault(
                .misused,
                "\(url.quoted()) is no URL; allowed: http://… or https://…, "
                    + "percent-encoded where it has to be")
        }
        var question = Question(
            isHeadOnly ? "HEAD" : "GET",
            isOfSite
                ? (target.hasPrefix("/") ? "" : "/") + target
                : "/v1/image?url=" + PercentText.encoded(url))
        if isOfSite { question.host = String(authority) }
        for field in fields { question.fields.append(try Self.field(field)) }
        return question
    }

    /// Host and port, and path and query; nil if there is no host.
    private var parts: (authority: Substring, target: Substring)? {
        guard let scheme = ["http://", "https://"].first(where: url.hasPrefix) else { return nil }
        let rest = url.dropFirst(scheme.count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        return authority.isEmpty ? nil : (authority, rest[authority.endIndex...])
    }

    private static func field(_ text: String) throws(CommandFault) -> Question.Field {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isName = sides[0].utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0)
        }
        guard sides.count == 2, !sides[0].isEmpty, isName,
            sides[1].utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else {
            throw CommandFault(
                .misused, "--header: \(text.quoted()) is no field; e.g. 'Accept: image/avif'")
        }
        return Question.Field(
            name: String(sides[0]), value: String(sides[1].drop { $0 == " " }))
    }
}

extension Commands {
    /// Gets an image or a site's answer where clients get it, in clear text.
    package func get(_ wish: Fetching) -> CommandEnding {
        attempt { () throws(CommandFault) in
            let question = try wish.question()
            if !wish.isHeadOnly, wish.output == nil, console.isTerminal {
                throw CommandFault(
                    .misused, "standard output is a terminal: say --output FILE, or --head")
            }
            let place = try place(wish)
            let receiver = BodyReceiver(wish.output, console)
            let begin = SystemClock.now()
            let exchange = Exchange(
                question, at: place, by: place.resolved, until: begin + (try options.limit())
            ) { answer, piece throws(AskingFailure) in try receiver.take(piece, of: answer) }
            Exchange.advance([exchange])
            let outcome = try outcome(exchange, receiver, wish)
            let took = SystemClock.now() - begin
            if wish.isHeadOnly || wish.output != nil { tell(outcome, receiver, took, wish) }
            return outcome.status < 400 ? .done : .refused
        }
    }

    private func place(_ wish: Fetching) throws(CommandFault) -> AskedPlace {
        if let base = wish.base {
            guard let place = AskedPlace(base, defaultPort: Fetching.clientPort) else {
                throw CommandFault(
                    .misused,
                    "--base: \(base.quoted()) is no address in clear text, e.g. "
                        + "http://127.0.0.1:8080; TLS is not spoken here")
            }
            return place
        }
        guard let address = try options.said(options.ownNode.clientAddress) else {
            throw CommandFault(
                .misconfigured,
                "this node serves nobody in clear text, or on a port that the kernel chooses "
                    + "(port 0); say --base")
        }
        return AskedPlace(address.reachable)
    }

    /// The answer, if it is one of success, or its head alone is wanted.
    private func outcome(
        _ exchange: Exchange, _ receiver: BodyReceiver, _ wish: Fetching
    ) throws(CommandFault) -> Answer {
        console.endProgress()
        let url = "http://\(exchange.place)\(exchange.question.path)"
        switch exchange.outcome {
        case .success(let answer) where wish.isHeadOnly: return answer
        case .success(var answer):
            guard answer.isSuccess else {
                answer.body = receiver.problem
                throw CommandFault(answer, asking: url)
            }
            try receiver.finish()
            return answer
        case .failure(let failure):
            throw receiver.fault
                ?? CommandFault(failure, asking: url, within: options.timeout)
        case nil: preconditionFailure("\(url) is still being asked")
        }
    }

    /// Says what came.
    private func tell(
        _ answer: Answer, _ receiver: BodyReceiver, _ took: Interval, _ wish: Fetching
    ) {
        let head = AnswerSummary(
            status: answer.status, fields: answer.fields.map { ($0.name, $0.value) },
            bodyBytes: wish.isHeadOnly ? nil : receiver.count, tookMilliseconds: took.milliseconds)
        if options.isJSON {
            console.print(head.json.line)
        } else if wish.isHeadOnly {
            console.print(head.lines)
        } else {
            console.print([head.line(savedAs: wish.output ?? "")])
        }
    }
}
