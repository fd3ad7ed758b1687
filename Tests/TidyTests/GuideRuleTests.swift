import Testing

@Suite("Each rule of the guide fails on what it forbids")
struct GuideRuleTests {
    @Test("a README that grows is a violation")
    func readmeLengthIsHeld() {
        let longest = String(repeating: "a\n", count: GuideRule.readmeLinesMax)
        #expect(GuideRule.readmeLength(in: page("README.md", longest)) == [])
        #expect(
            GuideRule.readmeLength(in: page("README.md", longest + "a\n")).map(\.line) == [151])
    }

    @Test(
        "a link that leads nowhere is a violation, and so is one that only DocC follows",
        arguments: [
            "[a](B.md)", "![a](a.png)", "[a]: B.md", "[a](../../../a)", "[a](/README.md)",
            "[a](#two)", "[a](Disk.md#two)", "[a](../file#one)", "<doc:Disk>", "[a](doc:Disk)",
        ])
    func deadLinksAreHeld(link: String) {
        #expect(deadLinks(in: "# One\n\n\(link)\n").map(\.line) == [3])
    }

    @Test(
        "a link to what is there, or out of the repository, is none",
        arguments: [
            "[a](Disk.md)", "[a](./Disk.md#the-disk)", "[a](../file)", "[a](../../README.md)",
            "[a](#one)", "[a](https://example.com/B.md#two)", "[a](http://127.0.0.1:8081/)",
            "```\n[a](B.md)\n```", "- [a](Disk.md), [b](../file)",
        ])
    func linksPass(text: String) {
        #expect(deadLinks(in: "# One\n\n\(text)\n") == [])
    }

    @Test("headings have the anchors that code hosts give them, code has none")
    func anchorsAreThoseOfCodeHosts() {
        let text = """
            # What is served, and how
            ## `GET` or [HEAD](A.md) of snake_case
            ## Twice
            ## Twice
            ```sh
            # no heading
            ```
            #nor this
            """
        #expect(
            page("a.md", text).anchors == [
                "what-is-served-and-how", "get-or-head-of-snake_case", "twice", "twice-1",
            ])
    }

    @Test("a page that the index does not link to is a violation")
    func listingIsHeld() {
        let index = page("guide/nuthatch.md", "[a](A.md)\n[b](../B.md#b)\n```\n[c](C.md)\n```\n")
        let pages = ["guide/A.md", "guide/B.md", "guide/C.md"].map { page($0, "") } + [index]
        #expect(
            GuideRule.unlisted(pages, index: index).map(\.path) == ["guide/B.md", "guide/C.md"])
    }

    private func page(_ path: String, _ text: String) -> MarkdownText {
        MarkdownText(path: path, text)
    }

    private func deadLinks(in text: String) -> [Violation] {
        let page = page("a/guide/Page.md", text)
        let known: [String: Set<String>] = [
            "a/guide/Page.md": page.anchors, "a/guide/Disk.md": ["the-disk"], "a/file": [],
            "README.md": ["nuthatch"],
        ]
        return GuideRule.deadLinks(in: page) { known[$0] }
    }
}
