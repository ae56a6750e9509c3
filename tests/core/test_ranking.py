from semindex.core.ranking import certain, is_folded, merge
from semindex.model.points import Hit


def hit(path: str, score: float, lines: tuple[int, int] = (1, 9), text: str = "text") -> Hit:
    return Hit(path, *lines, score, text, "h", f"{path}{lines}{text}")


def test_hits_are_ordered_by_score_then_path_then_lines() -> None:
    ordered = [
        hit("b", 0.9),
        hit("a", 0.5, (1, 9)),
        hit("a", 0.5, (2, 3)),
        hit("a", 0.5, (2, 9)),
        hit("b", 0.5, (2, 3)),
    ]

    assert merge([ordered[::-1]]) == ordered
    assert merge([ordered[::2], ordered[1::2]]) == ordered


def test_of_the_same_text_at_the_same_place_the_earlier_source_counts() -> None:
    own, other, elsewhere = hit("a", 0.5), hit("a", 0.6), hit("a", 0.4, text="another")

    assert merge([[own], [other, elsewhere]]) == [own, elsewhere]


def test_a_hit_is_folded_only_into_a_better_one_of_its_file_that_spans_it() -> None:
    inner = hit("a", 0.5, (3, 5))

    assert is_folded(inner, [hit("a", 0.9, (3, 5))])
    assert is_folded(inner, [hit("a", 0.9, (9, 9)), hit("a", 0.9, (1, 5))])
    assert not is_folded(inner, [hit("b", 0.9, (1, 9)), hit("a", 0.9, (4, 9)), hit("a", 0.9, (1, 4))])


def test_a_merge_is_complete_above_the_last_score_of_every_list_that_was_cut() -> None:
    long, short = [hit("a", 0.9), hit("b", 0.5)], [hit("c", 0.7)]

    assert certain([(long, False), (short, True)]) == 0.5
    assert certain([(long, False), (short, False)]) == 0.7
    assert certain([(long, True), (short, True), ([], False)]) == float("-inf")
