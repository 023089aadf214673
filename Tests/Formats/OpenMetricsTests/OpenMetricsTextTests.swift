import OpenMetrics
import TestSupport
import Testing

@Suite("The text of OpenMetrics")
struct OpenMetricsTextTests {
    @Test("Families have their lines in front of their values, and the text has an end")
    func families() {
        var text = OpenMetricsText()
        text.begin("a_build", .info, help: "What it is.")
        text.addInfo([("version", "1.2")])
        text.begin("a_queries", .counter, help: "How many.")
        text.addCount(17 as UInt64, [("transport", "udp"), ("result", "cached")])
        text.addCount(.max as UInt64)
        text.begin("a_age_seconds", .gauge, unit: "seconds", help: "How old.")
        text.addGauge(-3)
        text.addGauge(0.25, [("x", "")])
        text.begin("empty", .gauge, help: "None.")
        #expect(
            text.text == """
                # TYPE a_build info
                # HELP a_build What it is.
                a_build_info{version="1.2"} 1
                # TYPE a_queries counter
                # HELP a_queries How many.
                a_queries_total{transport="udp",result="cached"} 17
                a_queries_total 18446744073709551615
                # TYPE a_age_seconds gauge
                # UNIT a_age_seconds seconds
                # HELP a_age_seconds How old.
                a_age_seconds -3
                a_age_seconds{x=""} 0.25
                # TYPE empty gauge
                # HELP empty None.
                # EOF

                """)
    }

    @Test("Nothing in a label or a help text ends it")
    func escapes() {
        var text = OpenMetricsText()
        text.begin("a", .gauge, help: "a \\ \"b\"\nc")
        text.addGauge(1, [("name", "\\\"\n\u{e9}}{,= ")])
        #expect(
            text.text == #"""
                # TYPE a gauge
                # HELP a a \\ \"b\"\nc
                a{name="\\\"\né}{,= "} 1
                # EOF

                """#)
    }

    @Test("Buckets of a histogram count what is in those before them too")
    func histogram() {
        var text = OpenMetricsText()
        text.begin("a_seconds", .histogram, unit: "seconds", help: "How long.")
        text.addHistogram(bounds: [0.001, 0.5, 5], counts: [1, 0, 2, 4], sum: 12.5, [("to", "x")])
        #expect(
            text.text == """
                # TYPE a_seconds histogram
                # UNIT a_seconds seconds
                # HELP a_seconds How long.
                a_seconds_bucket{to="x",le="0.001"} 1
                a_seconds_bucket{to="x",le="0.5"} 1
                a_seconds_bucket{to="x",le="5.0"} 3
                a_seconds_bucket{to="x",le="+Inf"} 7
                a_seconds_count{to="x"} 7
                a_seconds_sum{to="x"} 12.5
                # EOF

                """)
    }

    @Test("Numbers are written as the format wants them")
    func numbers() {
        var text = OpenMetricsText()
        text.begin("a", .gauge, help: "")
        for value in [.nan, .infinity, -.infinity, 1.5e300] as [Double] { text.addGauge(value) }
        let values = text.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { String($0.dropFirst(2)) }
        #expect(values == ["NaN", "+Inf", "-Inf", "1.5e+300"])
    }
}
