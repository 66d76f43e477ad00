"""
Chinese and Korean text
=======================

Chinese is written without spaces between words, so whole clauses would count as words that hardly
ever repeat. Korean has spaces, but attaches endings to its words. For both, character n-grams work
without a dictionary; for Chinese there is also a word segmenter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from rankplane import NPSVOR, TextVectorizer
from rankplane.metrics import mean_absolute_error

# %%
# Made-up reviews with one to five stars. A review names two or three things and gives an opinion on
# each.

CHINESE = (
    ["这个手机的电池", "屏幕", "声音", "客服的态度", "包装", "价格", "送货的速度", "相机"],
    [["太差了", "完全不能用", "糟糕透了"], ["不太好", "有点失望", "比较差"],
     ["一般", "还可以", "马马虎虎"], ["不错", "挺好的", "比较满意"], ["非常好", "太棒了", "完美"]],
)  # fmt: skip
KOREAN = (
    ["배터리가", "화면이", "소리가", "서비스가", "포장이", "가격이", "배송이", "카메라가"],
    [["최악이에요", "정말 나빠요", "쓸 수 없어요"], ["별로예요", "조금 실망했어요", "좋지 않아요"],
     ["보통이에요", "그저 그래요", "무난해요"],
     ["좋아요", "괜찮아요", "만족해요"], ["정말 최고예요", "아주 훌륭해요", "완벽해요"]],
)  # fmt: skip


def made_reviews(
    things: list[str], opinions: list[list[str]], joint: str, n: int = 1200
) -> tuple[list[str], np.ndarray]:
    """Most opinions fit the rank, some fit a neighbouring one."""
    rng = np.random.default_rng(0)
    stars = rng.integers(1, 6, n)
    texts = []
    for rank in stars:
        clauses = []
        for thing in rng.choice(things, rng.integers(2, 4), replace=False):
            felt = np.clip(rank + rng.choice([-1, 0, 0, 0, 1]), 1, 5)
            clauses.append(f"{thing}{joint}{rng.choice(opinions[felt - 1])}")
        texts.append(f"{joint}".join(clauses))
    return texts, stars


chinese, chinese_stars = made_reviews(*CHINESE, joint="")
korean, korean_stars = made_reviews(*KOREAN, joint=" ")
print(chinese[0], chinese_stars[0])
print(korean[0], korean_stars[0])

# %%
# The same model with different features: words between spaces, n-grams of one to three characters,
# and segmented words.

characters = TextVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2)
trials = {
    ("Chinese", "words"): TextVectorizer(min_df=2),
    ("Chinese", "characters"): characters,
    ("Chinese", "segmenter"): TextVectorizer(segmenter="chinese", min_df=2),
    ("Korean", "words"): TextVectorizer(min_df=2),
    ("Korean", "characters"): characters,
}
errors = {}
for (language, features), vectorizer in trials.items():
    texts, stars = (chinese, chinese_stars) if language == "Chinese" else (korean, korean_stars)
    model = make_pipeline(vectorizer, NPSVOR(C=0.1)).fit(texts[:400], stars[:400])
    errors[language, features] = mean_absolute_error(stars[400:], model.predict(texts[400:]))
    n_features, mae = len(model[0].get_feature_names_out()), errors[language, features]
    print(f"{language:8} {features:11} {n_features:5} features   test MAE {mae:.2f}")

# %%
# For comparison, the error of always predicting the middle rank:

constant = np.mean(np.abs(chinese_stars[400:] - 3))
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.barh(
    [f"{language}, {features}" for language, features in errors],
    errors.values(),
    color=["C0"] * 3 + ["C1"] * 2,
)
axis.axvline(constant, color="grey", linewidth=1)
axis.annotate(
    "always 3 stars",
    (constant, 0.5),
    xytext=(-6, 0),
    textcoords="offset points",
    rotation=90,
    ha="right",
    va="center",
)
axis.set(xlabel="test MAE", xlim=(0, 1.1 * constant))
axis.invert_yaxis()
plt.show()
