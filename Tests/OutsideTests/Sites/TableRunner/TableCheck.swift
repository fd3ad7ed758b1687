import Harness

/// Compares one exchange with its expectations.
struct TableCheck {
    let exchange: TableExchange
    let response: Response
    let script: TableScript
    let origin: ScriptedOrigin
    let words: TableWords
    /// True if other nodes own the requested keys.
    let isClustered: Bool

    /// Returns a message for every expectation that does not hold.
    func complaints() -> [String] {
        var found = exchange.expectations.compactMap(complaint)
        let mayBeBroken = exchange.expectations.contains {
            if case .breakable = $0 { true } else { false }
        }
        if !mayBeBroken, !response.isWhole { found.append("the answer is not whole") }
        return found
    }

    private var asked: Int { script.requests.count }

    private func complaint(_ expectation: TableExpectation) -> String? {
        switch expectation {
        case .fetched: return fetched()
        case .cached: return cached(asked: 0...0)
        // A request on a reused connection that is lost may be retried on another.
        case .background: return cached(asked: 1...2)
        case .validated: return validated()
        case .stale: return stale()
        case .asked(let counts):
            // If an owner's fetch fails, the node sends its own request, and each of the two may
            // try a second connection.
            let counts =
                isClustered && counts == 1...2 ? 1...4 : counts
            return say(counts.contains(asked), "asked \(counts), not \(asked)")
        case .status(let status):
            return say(response.status == status, "status \(status), not \(response.status)")
        case .field(let name, let match): return field(name, match, response.fields, "answer")
        case .trailer(let name, let match):
            return field(name, match, response.trailers, "trailers")
        case .interim(let status, let line): return interim(status, line)
        case .age(let range):
            let ages = response.fields.all("Age").map { Int($0) ?? -1 }
            return say(ages.count == 1 && range.contains(ages[0]), "Age \(range), not \(ages)")
        case .answer(let number):
            return say(response.text == script.body(number), "the body of answer \(number)")
        case .body(let text):
            return say(response.text == words.filled(text), "the body \(text)")
        case .breakable: return nil
        case .cacheStatus(let name, let match):
            let value = response.cacheStatus[name].map { [$0] } ?? []
            return say(match.holds(value), "Cache-Status \(name) \(match)")
        case .originField(let name, let match):
            guard let last = script.requests.last else { return "a request to the origin" }
            return field(name, match, last.fields, "request to the origin")
        case .originTrailer(let name, let match):
            let trailers = script.requests.last.map { origin.body(of: $0).trailers }
            return field(name, match, trailers ?? HeaderFields(), "trailers to the origin")
        case .originTarget(let target):
            return say(
                script.requests.last?.target == words.filled(target), "origin target \(target)")
        case .originMethod(let method):
            return say(script.requests.last?.method == method, "origin method \(method)")
        case .originBody(let text):
            let body = script.requests.last.map { origin.body(of: $0) }
            return say(body?.text == words.filled(text), "origin body \(text)")
        }
    }

    private func say(_ isRight: Bool, _ expected: String) -> String? {
        isRight ? nil : "expected \(expected)"
    }

    private func field(
        _ name: String, _ match: TableMatch, _ fields: HeaderFields, _ place: String
    ) -> String? {
        let match = filled(match)
        return say(
            match.holds(fields.all(name)),
            "\(name) \(match) in the \(place), not \(fields.all(name))")
    }

    private func filled(_ match: TableMatch) -> TableMatch {
        switch match {
        case .absent, .present: match
        case .equal(let text): .equal(words.filled(text))
        case .contains(let text): .contains(words.filled(text))
        case .lacks(let text): .lacks(words.filled(text))
        }
    }

    private func interim(_ status: Int, _ line: String?) -> String? {
        let fields = zip(response.interim, response.interimFields).filter { $0.0 == status }
        guard let line else { return say(!fields.isEmpty, "an interim answer \(status)") }
        let isThere = fields.contains { pair in
            pair.1.lines.contains { "\($0.name): \($0.value)" == line }
        }
        return say(isThere, "an interim answer \(status) with \(line)")
    }

    // MARK: Source of the response

    private func fetched() -> String? {
        guard asked == 1, let request = script.requests.first else {
            return "expected one request to the origin, not \(asked)"
        }
        let isOwn = exchange.fields.contains { $0.hasPrefix("If-") }
        if request.isConditional, !isOwn { return "expected a request without a condition" }
        if response.cacheStatus["fwd"] == nil { return "expected fwd in Cache-Status" }
        guard bodyNamesItsAnswer else { return nil }
        return say(
            response.text == script.body(script.firstNumber),
            "the body of answer \(script.firstNumber)")
    }

    private func validated() -> String? {
        guard asked == 1, let request = script.requests.first else {
            return "expected one request to the origin, not \(asked)"
        }
        return say(request.isConditional, "a request with a condition")
    }

    private func cached(asked counts: ClosedRange<Int>) -> String? {
        guard counts.contains(asked) else {
            return "expected \(counts) requests to the origin, not \(asked)"
        }
        guard response.isHit || isGivenByOwner else { return "expected hit in Cache-Status" }
        return stored()
    }

    /// True if the owner has stored a response that the node could not, because of private fields.
    private var isGivenByOwner: Bool { isClustered && response.detail == "peer" }

    private func stale() -> String? {
        // A request on a reused connection that is lost may be retried on another.
        guard 1...2 ~= asked else { return "expected a request to the origin, not \(asked)" }
        if response.isHit { return "expected no hit in Cache-Status" }
        return stored()
    }

    /// Returns a complaint unless the response was stored before this exchange.
    private func stored() -> String? {
        if !isGivenByOwner, response.fields.all("Age").count != 1 { return "expected one Age" }
        guard bodyNamesItsAnswer else { return nil }
        let isEarlier = (1..<max(2, script.firstNumber)).contains {
            response.text == script.body($0)
        }
        return say(isEarlier, "the body of an answer before this exchange")
    }

    /// True if the body identifies the response it belongs to.
    private var bodyNamesItsAnswer: Bool {
        response.text.hasPrefix("answer ") && response.status != 206 && exchange.method != "HEAD"
    }
}
