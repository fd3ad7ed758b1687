import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Dashboard accessibility: narrow, dark, by keyboard, with a screen reader")
    struct DashboardLookTests {
        /// Opens a page with content in every section (members, images, an entry, a receipt, a
        /// table), with long texts.
        private func full(_ cluster: ClusterStage, isDark: Bool = false) throws -> DashboardStage {
            let long = "a-very-long-name-" + String(repeating: "of-an-image-", count: 12)
            var url = ""
            for name in ["one", "two", long] {
                let image = TestImage.drawn(name)
                let path = cluster.origin.serve(image, fields: [lasting], etag: "\"\(name)\"")
                // An image counts as hot once it has been served from memory.
                for index in [0, 1, 0, 0] {
                    _ = try cluster.get(path, from: index, expecting: image)
                }
                url = cluster.origin.url(path)
            }
            _ = try cluster.nodes[1].purge("{\"prefix\":\"\(url)-of-nothing-at-all\"}")
            let page = try DashboardStage(cluster.nodes[0], isDark: isDark)
            try page.goLive()
            try page.element("#inspect-url").type(url)
            try page.browser.press(.enter)
            try page.wait(for: "document.querySelector('.picture img')?.naturalWidth === 300")
            try page.wait(for: "document.querySelectorAll('#hot img').length >= 3")
            try page.click("#purges button")
            try page.wait("receipt", says: "Gone from all 2 nodes")
            try page.click("#figures summary")
            try page.wait(for: "document.querySelectorAll('#ring .label').length === 2")
            try page.wait(for: "document.querySelectorAll('#members-table tbody tr').length === 2")
            return page
        }

        private func list(_ page: DashboardStage, _ script: PageScript) throws -> [String] {
            let found = try page.browser.value(script.text())
            return try #require(found as? [String], "\(found)")
        }

        @Test("Nothing overflows, is cut off or is hard to read: wide and narrow, light and dark")
        func looks() throws {
            let cluster = try ClusterStage(2)
            let page = try full(cluster)
            for isDark in [false, true] {
                for width in [1_440, 1_024, 760, 390, 320] {
                    try page.browser.emulate(width: width, height: 900, isDark: isDark)
                    // Charts are redrawn at their current size in pixels.
                    let drawn = "Number(chart.querySelector('svg').getAttribute('width'))"
                    try page.wait(
                        for: "[...document.querySelectorAll('.chart')]"
                            + ".every((chart) => Math.abs(chart.clientWidth - \(drawn)) <= 1)")
                    let note = "\(width) \(isDark ? "dark" : "light")"
                    let overflow = try list(page, .overflow)
                    #expect(overflow.isEmpty, "\(note)")
                    let contrast = try list(page, .contrast)
                    #expect(contrast.isEmpty, "\(note)")
                }
            }
            try page.expectNoComplaint()
        }

        @Test("The checks of the page detect violations")
        func checks() throws {
            let node = try NodeProcess()
            let page = try DashboardStage(node)
            try page.goLive()
            #expect(try list(page, .overflow).isEmpty)
            _ = try page.browser.value(
                "document.getElementById('traffic-title').append('wide'.repeat(900))")
            #expect(try !list(page, .overflow).isEmpty)
            _ = try page.browser.value(
                "document.getElementById('traffic-title').style.color = 'rgb(128 128 128 / 30%)'")
            #expect(try !list(page, .contrast).isEmpty)
        }

        @Test("The Tab key reaches every control, and each shows that it has the focus")
        func keyboard() throws {
            let cluster = try ClusterStage(2)
            let page = try full(cluster)
            // Updates are paused; other tests cover changes during navigation.
            try page.click("#pause")
            let count = try #require(page.browser.value(PageScript.controls.text()) as? Int)
            #expect(count > 30)
            // The focus ring is shown only after keyboard input.
            try page.browser.press(.tab)
            _ = try page.browser.value("document.querySelector('.skip').focus()")
            var reached: Set<Int> = []
            var wrong: [String] = []
            for _ in 0..<(3 * count) {
                // After the last control the focus moves to the browser's own controls.
                let place = try page.browser.value(PageScript.focus.text()) as? [String: Any]
                guard let place, let number = place["number"] as? Int else { break }
                // The focus has wrapped around.
                guard number < 0 || reached.insert(number).inserted else { break }
                wrong += place["wrong"] as? [String] ?? ["no answer"]
                try page.browser.press(.tab)
            }
            let missed = Set(0..<count).subtracting(reached)
            let names = try missed.map { number in
                try page.browser.value(
                    "document.querySelector(`[data-number='${arguments[0]}']`).outerHTML", [number])
            }
            #expect(names.isEmpty)
            #expect(wrong.isEmpty)
        }

        @Test("Enter and Escape can do all that a mouse can do")
        func enter() throws {
            let node = try NodeProcess()
            let page = try DashboardStage(node)
            try page.goLive()
            let focused = "document.activeElement.id"
            try page.browser.press(.slash)
            #expect(try page.browser.value(focused) as? String == "inspect-url")
            _ = try page.browser.value("document.querySelector('.help summary').focus()")
            try page.browser.press(.enter)
            try page.wait(for: "document.querySelector('.help').open")
            try page.browser.press(.escape)
            try page.wait(for: "!document.querySelector('.help').open")
            #expect(
                try page.browser.value("document.activeElement.localName") as? String == "summary")
            _ = try page.browser.value("document.getElementById('drain').focus()")
            try page.browser.press(.enter)
            try page.wait(for: "document.getElementById('drain-dialog').open")
            #expect(try page.browser.value(focused) as? String == "drain-cancel")
            try page.browser.press(.enter)
            try page.wait(for: "!document.getElementById('drain-dialog').open")
            #expect(try page.browser.value(focused) as? String == "drain")
            try page.wait("state", says: "Ready")
        }

        @Test("Every interactive element has an accessible name and a role")
        func names() throws {
            let cluster = try ClusterStage(2)
            let page = try full(cluster)
            let selector =
                "a[href], button, input, textarea, summary, [tabindex='0'], svg[role], "
                + "[role=meter], dialog, main, nav, section"
            var seen = 0
            for element in try page.browser.elements(selector) {
                guard try element.isShown || element.property("type") == "radio" else { continue }
                let (name, role) = (try element.name, try element.role)
                let isSaid = !name.isEmpty && !["generic", "none", ""].contains(role)
                // The main landmark is unique and needs no name.
                let isMain = role == "main"
                let markup = try element.property("outerHTML").prefix(300)
                #expect(isSaid || isMain, "\(role) “\(name)”: \(markup)")
                seen += 1
            }
            #expect(seen > 50)
            let doubled = try page.browser.value(
                "[...document.querySelectorAll('[id]')].map((e) => e.id)"
                    + ".filter((id, index, all) => all.indexOf(id) !== index)")
            #expect(doubled as? [String] == [])
            // One top-level heading, and no skipped levels.
            let levels = try page.browser.value(
                "[...document.querySelectorAll('main :is(h1, h2, h3)')]"
                    + ".filter((e) => e.checkVisibility()).map((e) => Number(e.localName[1]))")
            let steps = try #require(levels as? [Int])
            #expect(steps.first == 1 && steps.count { $0 == 1 } == 1)
            #expect(zip(steps, steps.dropFirst()).allSatisfy { $1 <= $0 + 1 }, "\(steps)")
        }
    }
}
