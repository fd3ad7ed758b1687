import Testing

extension Outside {
    /// The parser must give the table's text the meaning it appears to have.
    @Suite("The table of cases is parsed as written")
    struct TableSelfTests {
        @Test("A case has its site, requests, responses and expectations in order")
        func oneCase() throws {
            let cases = try TableReader.cases(
                in: """
                    # A remark.
                    == One thing [9111 §3]
                    at b.example
                    > POST /sub
                      X-A: 1
                      | body
                    < 103
                      Link: </a>
                    < 200 Fine
                      Cache-Control: max-age=1
                      no Date
                      | answer
                    < hang
                    ! fetched 200
                    ! Cache-Control: max-age=1
                    >> GET
                    ! cached
                    """)
            let one = try #require(cases.first)
            #expect(cases.count == 1 && one.name == "One thing" && one.section == "9111 §3")
            #expect(one.host == "b.example" && one.exchanges.count == 2)
            let first = one.exchanges[0]
            #expect(first.method == "POST" && first.suffix == "/sub" && first.body == "body")
            #expect(first.fields == ["X-A: 1"] && !first.isRepeated && first.answers.count == 2)
            let response = first.answers[0]
            #expect(response.status == 200 && response.reason == "Fine" && !response.hasDate)
            #expect(response.interim.map(\.status) == [103] && response.body == "answer")
            #expect(response.interim.first?.fields == ["Link: </a>"])
            #expect(first.answers[1].ending == .hang)
            #expect(first.expectations.count == 3)
            #expect(one.exchanges[1].isRepeated)
        }

        @Test("Each row makes a case, and names are unique")
        func rows() throws {
            let cases = try TableReader.cases(
                in:
                    "== Of {1} [x]\n> GET\n  A: {2}\n- a | b\n- c | d\n"
                    + "== Other [x]\n> GET\n- e\n- f"
            )
            #expect(cases.map(\.name) == ["Of a", "Of c", "Other | e", "Other | f"])
            #expect(cases.flatMap { $0.exchanges[0].fields } == ["A: b", "A: d"])
        }

        @Test("Unparsable text is refused", arguments: ["GET", "! cached", "== a", "== a [x]"])
        func wrong(_ text: String) {
            #expect(throws: TableReader.Wrong.self) { try TableReader.cases(in: text) }
        }

        @Test(
            "A meaningless expectation is refused",
            arguments: ["fetchd", "cached fetchedd", "age x", "origin", "trailer", "X-A 5"])
        func wrongExpectation(_ text: String) {
            #expect(throws: TableReader.Wrong.self) { try TableExpectation.read(text) }
        }

        @Test("Dates are written in each of the three formats, for the same instant")
        func dates() {
            let words = TableWords(path: "/p", host: "h", originPort: 1)
            let usual = words.filled("{now}")
            let parts = usual.split(separator: " ").map(String.init)
            #expect(parts.count == 6 && parts[5] == "GMT" && parts[0].hasSuffix(","))
            let older = words.filled("{now:850}")
            #expect(older.contains("-\(parts[2])-\(parts[3].suffix(2)) \(parts[4]) GMT"))
            #expect(words.filled("{now:asctime}").hasSuffix("\(parts[4]) \(parts[3])"))
            #expect(words.filled("{path} {url} {odd}") == "/p http://h/p {odd}")
            #expect(words.filled("{now+3600}") != usual)
        }
    }
}
