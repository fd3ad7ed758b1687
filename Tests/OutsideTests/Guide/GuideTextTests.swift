import Testing

@Suite("The blocks of a page become the steps of a shell")
struct GuideTextTests {
    private func steps(_ text: String) throws -> [GuideText.Step] { try GuideText(text).steps }

    @Test("Commands are steps as they stand, with the line of their block")
    func commands() throws {
        let page = "# A page\n\n```sh\na\n\nb # c\n```\n\n- item\n\n  ```sh\n  d\n  ```\n"
        #expect(
            try steps(page) == [
                .init(line: 3, commands: "a\n\nb # c\n", text: "a\n\nb # c\n"),
                .init(line: 11, commands: "d\n", text: "d\n"),
            ])
    }

    @Test("Prompts are commands, and the rest is what they print")
    func console() throws {
        let step = try #require(try steps("```console\n$ a\nb\n\n$ c\nd\n```\n").first)
        #expect(step.commands == "set +e\na\nc\nset -e\n")
        #expect(step.output?.text == "b\n\nd\n")
    }

    @Test(
        "Other blocks are checked by a program",
        arguments: [
            ("yaml", "nuthatch check-config"), ("json", "python3 -m json.tool"),
            ("python", "python3"),
        ])
    func checked(language: String, program: String) throws {
        let step = try #require(try steps("```\(language)\na\n```\n").first)
        #expect(step.commands.hasPrefix(program) && step.text == "a\n")
    }

    @Test("A comment says what becomes of the next block")
    func comments() throws {
        let page = """
            <!-- run:
            a
            b
            -->
            <!-- needs: tool -->
            ```sh
            c
            ```

            <!-- output -->
            ```text
            d
            ```
            <!-- file: e.yaml -->
            ```yaml
            f: g
            ```
            <!-- not run: it is dear -->

            ```sh
            h
            ```
            <!-- output of: i -->
            ```json
            {}
            ```
            """
        #expect(
            try steps(page) == [
                .init(line: 1, commands: "a\nb\n"),
                .init(
                    line: 6, commands: "c\n", text: "c\n", program: "tool",
                    output: ShownOutput("d\n", isJSON: false)),
                .init(line: 15, commands: "cp \"$block\" 'e.yaml'\n", text: "f: g\n"),
                .init(line: 20, commands: "unrun\n", text: "h\n"),
                .init(
                    line: 24, commands: "i\n", text: "{}\n",
                    output: ShownOutput("{}\n", isJSON: true)),
            ])
    }

    @Test("Text and drawings are no steps, Swift is kept apart")
    func others() throws {
        let page = try GuideText("```text\na -> b\n```\n```\n+--+\n```\n```swift\nlet a = 1\n```\n")
        #expect(page.steps.isEmpty)
        #expect(page.swift.map(\.line) == [7] && page.swift.map(\.text) == ["let a = 1\n"])
    }

    @Test(
        "What cannot be run, and has no mark, is a fault",
        arguments: [
            "```ruby\na\n```", "```text\n$ a\n```", "```\nnuthatch serve\n```",
            "```text\ndeploy/test\n```", "```sh\na\n",
            "<!-- not run -->\n```sh\na\n```", "<!-- not run: -->\n```sh\na\n```",
            "<!-- not run: dear -->\n```yaml\na: b\n```",
            "<!-- skip: dear -->\n```sh\na\n```", "<!-- a note -->",
            "<!-- not run: dear -->\n\nA sentence.\n\n```sh\na\n```",
            "<!-- file: a -->\n<!-- needs: b -->\n```sh\na\n```", "<!-- needs: b -->\n",
            "<!-- output -->\n```text\na\n```",
            "```console\n$ a\n```\n<!-- output -->\n```text\na\n```",
            "<!-- run: a", "<!-- run: -->",
        ])
    func faults(page: String) {
        #expect(throws: GuideText.Fault.self) { try GuideText(page) }
    }
}

@Suite("What a page shows is compared with what was printed")
struct ShownOutputTests {
    @Test(
        "Times, ids and the width of columns may differ",
        arguments: [
            ("at 2026-11-23T14:38:06.931Z", "at 2027-01-02T00:00:00.1Z\n\n"),
            ("Date: Mon, 23 Nov 2026 14:38:06 GMT", "Date: Fri, 27 Nov 2026 15:00:00 GMT"),
            ("[23/Nov/2026:14:43:55 +0000] x", "[24/Dec/2026:00:00:00 +0100] x"),
            ("node 82d828f8", "node 3b41a0fb"), ("c20f519d451f09cb-2", "3b41a0fb3846c449-6"),
            ("a 0%", "a  99.9%"), ("a  16ms", "a 1.2s"),
            ("ttl=3599", "ttl=59"),
            ("a…z", "a b c z"), ("…", "a\nb"), ("a\n…\nz", "a\nz"), ("a\n…", "a\nb\nc"),
        ])
    func alike(shown: String, printed: String) {
        #expect(ShownOutput(shown, isJSON: false).matches(printed))
    }

    @Test(
        "Everything else may not",
        arguments: [
            ("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("status 200", "status 403"),
            ("a…z", "b z"), ("a…c…z", "a z"), ("a\n…\nz", "a\nb"),
            ("fwd-status=200", "fwd-status=404"),
        ])
    func unlike(shown: String, printed: String) {
        #expect(!ShownOutput(shown, isJSON: false).matches(printed))
    }

    @Test("Of a JSON document the numbers and the line breaks may differ, keys and texts may not")
    func documents() {
        let shown = ShownOutput("{\"a\":1, \"b\":\"c\",\n \"d\":-2.5}\n", isJSON: true)
        #expect(shown.matches("{\"a\":20,\"b\":\"c\",\"d\":3}"))
        for other in [
            "{\"a\":20,\"b\":\"e\",\"d\":3}", "{\"b\":\"c\",\"a\":20,\"d\":3}",
            "{\"a\":20,\"b\":\"c\"}",
        ] {
            #expect(!shown.matches(other))
        }
    }
}
