import Client
import Testing

@Suite("Text on a terminal")
struct TextLineTests {
    @Test("what a node says cannot move the cursor or change the terminal")
    func escaped() {
        let line = TextLine("a\u{1B}[2Jb\r\n\u{9B}31m\u{202E}", .bad)
        let written = line.rendered(isColoured: true)
        #expect(written == "\u{1B}[31ma\\u{1B}[2Jb\\r\\n\\u{9B}31m\\u{202E}\u{1B}[0m")
        #expect(TextLine("a\tb").text == "a\\tb")
    }

    @Test("looks are written only where there are colours, and blanks at the end nowhere")
    func looks() {
        let line = TextLine("a ", .good) + TextLine("b", .plain) + TextLine("  ", .faint)
        #expect(line.rendered(isColoured: false) == "a b")
        #expect(line.rendered(isColoured: true) == "\u{1B}[32ma \u{1B}[0mb")
        #expect(TextLine("a ", .reversed).rendered(isColoured: true) == "\u{1B}[7ma \u{1B}[0m")
        #expect(TextLine("a ", .reversed).rendered(isColoured: false) == "a")
    }

    @Test("columns are those of a terminal: none for accents that follow, two for wide characters")
    func columns() {
        #expect(TextLine("abc").columns == 3)
        #expect(TextLine("e\u{301}").columns == 1)
        #expect(TextLine("鳥🐦").columns == 4)
    }

    @Test("a line is cut where there is no room, never through a character")
    func cut() {
        #expect(TextLine("abcd").truncated(to: 4).text == "abcd")
        #expect(TextLine("abcde").truncated(to: 4).text == "abc…")
        #expect((TextLine("ab", .good) + TextLine("cde")).truncated(to: 3).text == "ab…")
        #expect(TextLine("鳥鳥鳥").truncated(to: 4).text == "鳥…")
        #expect(TextLine("abc").truncated(to: 0).text == "")
        for columns in 0...12 {
            let line = TextLine("a鳥b").padded(to: columns)
            #expect(line.columns == columns, "\(columns)")
            #expect(TextLine("a鳥b").padded(to: columns, isRight: true).columns == columns)
        }
    }
}

@Suite("Tables and bars")
struct TableTests {
    @Test("columns are as wide as their widest cell, and figures stand at the right")
    func table() {
        var table = Table([.left("NAME"), .right("N"), .flexible("URL")])
        table.append([TextLine("a"), TextLine("12"), TextLine("http://a.example/1")])
        table.append([TextLine("longer"), TextLine("3"), TextLine("b")])
        let lines = table.lines().map { $0.rendered(isColoured: false) }
        #expect(
            lines == [
                "NAME     N  URL", "a       12  http://a.example/1", "longer   3  b",
            ])
    }

    @Test("where there is no room the flexible column is cut, and no line is wider than it may be")
    func narrow() {
        var table = Table([.left("NAME"), .flexible("URL"), .right("N")])
        table.append([TextLine("abc"), TextLine("http://a.example/long/path"), TextLine("7")])
        #expect(table.lines(columnsMax: 24)[1].text == "abc   http://a.examp…  7")
        for columns in 1...40 {
            #expect(table.lines(columnsMax: columns).allSatisfy { $0.columns <= columns })
        }
    }

    @Test("a bar shows what there is, and is full only when it is all")
    func bars() {
        #expect(Bar.text(0, columns: 4) == "    ")
        #expect(Bar.text(0.0001, columns: 4) == "▏   ")
        #expect(Bar.text(0.5, columns: 4) == "██  ")
        #expect(Bar.text(0.9999, columns: 4) == "███▉")
        #expect(Bar.text(1, columns: 4) == "████" && Bar.text(7, columns: 4) == "████")
        #expect(Bar.text(.nan, columns: 2) == "  ")
    }

    @Test("a sparkline has the newest at the right, and a gap where nothing is known")
    func sparklines() {
        let line = Bar.sparkline([0, 50, nil, 100], most: 100, columns: 6)
        #expect(line == "  ▁▅ █")
        #expect(Bar.sparkline([1, 2, 3], most: 3, columns: 2) == "▆█")
        #expect(Bar.sparkline([0, 0], most: 0, columns: 2) == "▁▁")
    }

    @Test("a line of progress has its share where the whole is known")
    func progress() {
        let line = ProgressLine.line("purging", share: 0.5, note: "2/4 confirmed", columnsMax: 60)
        #expect(line.text == "purging  ██████████             50%  2/4 confirmed")
        let open = ProgressLine.line("reading", share: nil, note: "12 URLs", columnsMax: 60)
        #expect(open.text == "reading  12 URLs")
        #expect(ProgressLine.line("a", share: 1, note: "b", columnsMax: 12).columns == 12)
    }
}
